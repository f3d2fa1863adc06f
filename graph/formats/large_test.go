package formats

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"placer/graph/formats/onnx"
)

// TestLargeFile: a file of 3 GiB in no form costs next to no memory.
func TestLargeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 3<<30); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadFile(path, onnx.Default()); err == nil {
		t.Error("no error")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := ReadFrom(f, "stdin", onnx.Default()); err == nil {
		t.Error("no error")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes", used)
	}
}
