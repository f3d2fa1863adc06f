package fsx

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// errClaimed says that another process, or another opening of the file, has it.
var errClaimed = errors.New("claimed")

// Claim takes f for its opener until it is closed or the process ends, however that
// comes about: while it lasts, Claim of the same file opened again is an error. Where
// the system or the file system knows no locks nothing is claimed.
func Claim(f *os.File) error {
	if err := lock(f); errors.Is(err, errClaimed) {
		return fmt.Errorf("%s is in use by another process", f.Name())
	}
	return nil
}

// OpenFolder makes folder dir where it is not there, claims it until it is closed, as
// Claim does a file, and removes what a killed WriteFile left in it.
func OpenFolder(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err = Claim(f); err == nil {
		err = RemoveTemporary(dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
