//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fsx_test

import (
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
