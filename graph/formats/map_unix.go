//go:build unix

package formats

import (
	"errors"
	"math"
	"os"
	"syscall"
)

// mapFile maps size bytes of f for reading. The data must not be used after
// unmap.
func mapFile(f *os.File, size int64) (data []byte, unmap func(), err error) {
	if size > math.MaxInt {
		return nil, nil, errors.New("file is larger than the address space")
	}
	data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return data, func() { _ = syscall.Munmap(data) }, nil
}
