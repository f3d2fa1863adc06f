package fsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Lines is a file of lines that is written line by line: what Add has returned
// from is on disk, and what a kill leaves half written is gone when the file is
// opened again.
type Lines struct {
	file *os.File
	size int64 // of whole lines
}

// OpenLines opens or makes the file path, cuts off an unfinished last line, and
// calls read for every line there is, from line 1 and without its end, unless it
// is empty. The error of read comes back with file and line. The file is claimed
// until it is closed: who opens it meanwhile gets an error.
func OpenLines(path string, read func(line []byte) error) (*Lines, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := Claim(f); err != nil {
		f.Close()
		return nil, err
	}
	size, err := load(f, read)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Lines{f, size}, nil
}

// load returns the size of the whole lines.
func load(f *os.File, read func(line []byte) error) (size int64, err error) {
	data, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if line = line[:len(line)-1]; len(line) == 0 {
			continue
		}
		if err := read(line); err != nil {
			return 0, fmt.Errorf("%s: line %d: %w", f.Name(), n, err)
		}
	}
	return int64(len(data)), cut(f, int64(len(data)))
}

// cut makes f end, and go on, at size.
func cut(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}

// Add appends line, which must not contain an end of line, whole or, as where the
// disk is full, not at all.
func (l *Lines) Add(line []byte) error {
	if bytes.IndexByte(line, '\n') >= 0 {
		panic(fmt.Sprintf("fsx: %q is more than a line", line))
	}
	n, err := l.file.Write(append(line[:len(line):len(line)], '\n'))
	if err != nil {
		return errors.Join(err, cut(l.file, l.size))
	}
	l.size += int64(n)
	return l.file.Sync()
}

// Close closes the file.
func (l *Lines) Close() error { return l.file.Close() }
