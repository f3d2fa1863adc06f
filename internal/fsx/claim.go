package fsx

import (
	"errors"
	"fmt"
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
