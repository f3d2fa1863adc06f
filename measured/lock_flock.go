//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package measured

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other processes from f until the file is closed, also by the end of
// this process.
func lock(f *os.File) (unlock func(), err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errInUse
	}
	return func() {}, err
}
