package formats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Parts of files beside a graph are read, a terabyte from their beginning too; what is in
// other folders is not, nor what is no file.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	models := filepath.Join(dir, "models")
	if err := os.MkdirAll(filepath.Join(models, "parts"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret", "models/w.data", "models/parts/v.data"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("0123456789"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(models, "link")); err != nil {
		t.Log(err)
	}
	b := newBeside(filepath.Join(models, "m.onnx"))
	defer b.close()
	for range 2 {
		if data, err := b.read("w.data", 3, 4); err != nil || string(data) != "3456" {
			t.Errorf("%q, %v", data, err)
		}
	}
	if data, err := b.read("parts/v.data", 0, 2); err != nil || string(data) != "01" {
		t.Errorf("%q, %v", data, err)
	}
	for name, want := range map[string]string{"../secret": "escapes", filepath.Join(dir, "secret"): "escapes", "link": "", "parts": "no regular file", "none": "no such file"} {
		if data, err := b.read(name, 0, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := b.read("w.data", 8, 4); err == nil || !strings.HasPrefix(err.Error(), "4 bytes at 8: ") {
		t.Error(err)
	}
	f, err := os.Create(filepath.Join(models, "large.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("end"), 1<<40); err != nil {
		return // a file system without files of this size
	}
	if data, err := b.read("large.data", 1<<40, 3); err != nil || string(data) != "end" {
		t.Errorf("%q, %v", data, err)
	}
}
