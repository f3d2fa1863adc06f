//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fsx_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/internal/fsx"
)

func TestLinesAreClaimed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	none := func([]byte) error { return nil }
	first, err := fsx.OpenLines(path, none)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fsx.OpenLines(path, none); err == nil || !strings.Contains(err.Error(), path+" is in use") {
		t.Errorf("opened twice: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := fsx.OpenLines(path, none)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// A folder is one process's at a time, and loses what a kill left in it, not while
// somebody else has it.
func TestFoldersAreClaimed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "run")
	first, err := fsx.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, ".plan.json.123.placer-tmp")
	if err := os.WriteFile(left, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := fsx.OpenFolder(dir); err == nil || !strings.Contains(err.Error(), dir+" is in use") {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a file of the process that has the folder is gone: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := fsx.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := os.Stat(left); err == nil {
		t.Errorf("%s is still there", left)
	}
}
