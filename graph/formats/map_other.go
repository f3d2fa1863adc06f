//go:build !unix

package formats

import (
	"errors"
	"os"
)

// mapFile says that files cannot be mapped here; they are read instead.
func mapFile(*os.File, int64) (data []byte, unmap func(), err error) {
	return nil, nil, errors.ErrUnsupported
}
