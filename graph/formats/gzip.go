package formats

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"placer/graph/formats/foreign"
)

// gzipMagic begins what gzip has compressed.
const gzipMagic = "\x1f\x8b\x08"

// A file expands to at most mostExpansion times its size beyond freeExpansion bytes: texts
// of graphs do to 10 to 50 times, a file made to fill memory to 1,000.
const (
	mostExpansion = 200
	freeExpansion = 64 << 20
)

// expand returns data, or what it holds if gzip has compressed it: at most
// foreign.MaxFile, and no more than its size explains.
func expand(data []byte, name string) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(gzipMagic)) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	most := min(foreign.MaxFile, freeExpansion+mostExpansion*len(data))
	out, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("%s: gzip: %w", name, err)
	}
	if len(out) > most {
		return nil, fmt.Errorf("%s: %d bytes expand to more than %d", name, len(data), most)
	}
	return out, nil
}

// Bytes returns what the file at path holds, expanded where gzip has compressed it.
func Bytes(path string) ([]byte, error) {
	data, err := foreign.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return expand(data, path)
}
