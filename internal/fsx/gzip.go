package fsx

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// gzipMagic begins what gzip has compressed.
const gzipMagic = "\x1f\x8b\x08"

// A file expands to at most mostExpansion times its size beyond freeExpansion bytes: texts
// of graphs do to 10 to 50 times, a file made to fill memory to 1,000.
const (
	mostExpansion = 200
	freeExpansion = 64 << 20
)

// Expand returns data, or what it holds if gzip has compressed it: at most most bytes, and
// no more than its size explains. name is for errors.
func Expand(data []byte, name string, most int64) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(gzipMagic)) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	most = min(most, freeExpansion+mostExpansion*int64(len(data)))
	out, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: gzip: %w", name, err)
	}
	if int64(len(out)) > most {
		return nil, fmt.Errorf("%s: %d bytes expand to more than %d", name, len(data), most)
	}
	return out, nil
}
