//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package measured

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lock keeps other processes from f by a file beside it. It stays behind when
// the process is killed, and has to be removed by hand.
func lock(f *os.File) (unlock func(), err error) {
	path := f.Name() + ".lock"
	l, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return func() {}, fmt.Errorf("%w (%s exists)", errInUse, path)
	}
	if err != nil {
		return func() {}, err
	}
	l.Close()
	return func() { os.Remove(path) }, nil
}
