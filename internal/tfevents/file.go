package tfevents

import (
	"os"
	"path/filepath"
)

// File is an events file in a folder.
type File struct {
	*Writer
	file *os.File
}

// Create makes the folder dir where it is not there, and the events file of the
// program name that goes on from step in it. clock is as NewWriter says.
func Create(dir, name string, step int, clock func() float64) (*File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, FileName(int64(step), name, step)))
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(f, clock)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{w, f}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
