package fsx

import (
	"fmt"
	"io"
	"os"
)

// ReadAll reads r, of at most most bytes. Of a regular file it asks the size first:
// one that is too long is refused unread. name is for errors.
func ReadAll(r io.Reader, name string, most int64) ([]byte, error) {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > most {
			return nil, fmt.Errorf("%s: is longer than %d bytes", name, most)
		}
	}
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: is longer than %d bytes", name, most)
	}
	return data, nil
}

// Read is ReadAll of a document, expanded where gzip has compressed it; both are of at
// most most bytes.
func Read(r io.Reader, name string, most int64) ([]byte, error) {
	data, err := ReadAll(r, name, most)
	if err != nil {
		return nil, err
	}
	return Expand(data, name, most)
}

// ReadFile is Read of the file at path.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, want a file", path)
	}
	return Read(f, path, most)
}
