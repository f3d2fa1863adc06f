package onnx

import (
	"fmt"
	"io"
	"os"

	"placer/graph"
)

// maxStream bounds what is read from a pipe, which cannot be mapped.
const maxStream = 4 << 30

// ImportFile reads the ONNX model at path. A regular file is mapped, not read:
// the pages of weights are never touched. Files of external data are not
// opened.
func ImportFile(path string, cfg Config) (*graph.Graph, *Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return nil, nil, fmt.Errorf("%s: is a folder", path)
	}
	if info.Mode().IsRegular() && info.Size() > 0 {
		data, unmap, err := mapFile(f, info.Size())
		if err == nil {
			defer unmap()
			return Import(data, path, cfg)
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxStream+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(data) > maxStream {
		return nil, nil, fmt.Errorf("%s: is longer than %d bytes", path, maxStream)
	}
	return Import(data, path, cfg)
}
