package fsx_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/internal/fsx"
)

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	missing, file := filepath.Join(dir, "none", "plan.json"), filepath.Join(dir, "plan.json")
	for path, want := range map[string]string{file: "", os.DevNull: "", dir: "is a folder", missing: missing + " cannot be written: "} {
		before := fsx.Writable(path)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 0 {
			t.Fatalf("%s: asking leaves %v, %v", path, entries, err)
		}
		switch {
		case want == "" && before != nil:
			t.Errorf("%s: %v", path, before)
		case want != "" && (before == nil || !strings.Contains(before.Error(), want)):
			t.Errorf("%s: %v, want %q", path, before, want)
		}
		if want == "" {
			continue
		}
		if err := fsx.WriteFile(path, func(io.Writer) error { return nil }); err == nil || err.Error() != before.Error() {
			t.Errorf("%s: asked before %v, writing says %v", path, before, err)
		}
	}
}
