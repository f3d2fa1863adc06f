package fsx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Writable returns the error that WriteFile would meet at path before it writes: no
// folder to write in, one that takes no files, a folder of that name. It leaves nothing
// behind. It is for asking before hours of work whose result goes to path.
func Writable(path string) error {
	path, mode, err := target(path)
	if err != nil || !mode.IsRegular() {
		return err
	}
	f, err := temporary(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// temporary makes a file beside path. An error names path, not the file.
func temporary(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+temporarySuffix)
	var at *fs.PathError
	if errors.As(err, &at) {
		return nil, named(path, at.Path, err)
	}
	return f, err
}

// named makes an error about the temporary file one about path, for which that stands.
func named(path, temporary string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && at.Path == temporary {
		return fmt.Errorf("%s cannot be written: %w", path, at.Err)
	}
	return err
}

// RemoveTemporary removes what WriteFile leaves in folder when it is killed. Nobody
// else may be writing there.
func RemoveTemporary(folder string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && Temporary(n) {
			err = errors.Join(err, os.Remove(filepath.Join(folder, n)))
		}
	}
	return err
}

// temporarySuffix is no other program's: a folder that a command is given may hold anything.
const temporarySuffix = ".placer-tmp"

// Temporary reports whether a file of that name, without its folder, is one that
// WriteFile is about to rename.
func Temporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporarySuffix)
}
