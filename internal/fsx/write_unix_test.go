//go:build unix

package fsx_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"placer/internal/fsx"
)

// A pipe stands for all that a rename would destroy, /dev/null for one.
func TestWriteFileToPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	read := make(chan string)
	go func() {
		data, _ := os.ReadFile(path)
		read <- string(data)
	}()
	if err := fsx.WriteFile(path, text("through")); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(path); info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatalf("the pipe was replaced by a file of mode %v", info.Mode())
	}
	if got := <-read; got != "through" {
		t.Errorf("the pipe carried %q", got)
	}
}
