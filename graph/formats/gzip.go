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

// expand returns data, or what it holds if gzip has compressed it: at most
// foreign.MaxFile.
func expand(data []byte, name string) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(gzipMagic)) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := io.ReadAll(io.LimitReader(r, foreign.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: gzip: %w", name, err)
	}
	if len(out) > foreign.MaxFile {
		return nil, fmt.Errorf("%s: expands to more than %d bytes", name, foreign.MaxFile)
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
