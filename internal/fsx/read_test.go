package fsx

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// counted counts what is read of an endless input.
type counted struct{ n int64 }

func (c *counted) Read(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

// TestReadAll: an endless input is read up to the bound, a regular file that is too
// long not at all.
func TestReadAll(t *testing.T) {
	if data, err := ReadAll(strings.NewReader("four"), "stdin", 4); err != nil || string(data) != "four" {
		t.Errorf("%q, %v", data, err)
	}
	var c counted
	if _, err := ReadAll(&c, "stdin", 1<<16); err == nil || err.Error() != "stdin: is longer than 65536 bytes" || c.n > 1<<17 {
		t.Errorf("%v after %d bytes", err, c.n)
	}
	path := filepath.Join(t.TempDir(), "sparse")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(10 << 30); err != nil { // sparse
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = ReadFile(path, 4<<30)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.HasSuffix(err.Error(), "sparse: is longer than 4294967296 bytes") || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%v after %d bytes were allocated", err, after.TotalAlloc-before.TotalAlloc)
	}
	if _, err := ReadAll(f, "sparse", 4); err == nil {
		t.Error("no error")
	}
	if at, _ := f.Seek(0, io.SeekCurrent); at != 0 {
		t.Errorf("%d bytes were read", at)
	}
}
