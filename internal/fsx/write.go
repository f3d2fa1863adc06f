package fsx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile makes the file path hold what write writes. The bytes go to a
// temporary file in the same folder, which is synced and renamed to path when
// write has succeeded: a reader, or a crash, meets the old file or the new one
// and nothing between. A new file has mode 0644, an old one keeps its mode; a
// symbolic link stays and its target is replaced. What is no regular file (a
// pipe, /dev/stdout) is written in place.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	path, mode, err := target(path)
	if err != nil {
		return err
	}
	if !mode.IsRegular() {
		return inPlace(path, write)
	}
	f, err := temporary(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = named(path, f.Name(), err)
		}
	}()
	if err := fill(f, write); err != nil {
		return err
	}
	if err := f.Chmod(mode.Perm()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// target returns what path stands for, behind symbolic links, and the mode that a
// file there has or is to have.
func target(path string) (to string, mode fs.FileMode, err error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return path, 0o644, nil
	case err != nil:
		return path, 0, err
	case info.IsDir():
		return path, 0, fmt.Errorf("%s is a folder", path)
	default:
		return path, info.Mode(), nil
	}
}

func fill(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

func inPlace(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = fill(f, write)
	return errors.Join(err, f.Close())
}

// syncFolder makes the rename durable. File systems that cannot sync a folder
// say so by an error, which changes nothing: the file is complete either way.
func syncFolder(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		d.Close()
	}
}
