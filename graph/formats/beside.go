package formats

import (
	"fmt"
	"os"
	"path/filepath"
)

// beside reads parts of files in the folder of a graph file, and in no other.
type beside struct {
	folder string
	root   *os.Root
	open   map[string]*os.File
}

func newBeside(path string) *beside {
	return &beside{folder: filepath.Dir(path), open: map[string]*os.File{}}
}

// read returns length bytes of the file of that name from offset on.
func (b *beside) read(name string, offset, length int64) ([]byte, error) {
	f, err := b.file(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	data := make([]byte, length)
	if _, err := f.ReadAt(data, offset); err != nil {
		return nil, fmt.Errorf("%d bytes at %d: %w", length, offset, err)
	}
	return data, nil
}

func (b *beside) file(name string) (f *os.File, err error) {
	if f := b.open[name]; f != nil {
		return f, nil
	}
	if b.root == nil {
		if b.root, err = os.OpenRoot(b.folder); err != nil {
			return nil, err
		}
	}
	if f, err = b.root.Open(name); err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	b.open[name] = f
	return f, nil
}

func (b *beside) close() {
	for _, f := range b.open {
		f.Close()
	}
	if b.root != nil {
		b.root.Close()
	}
}
