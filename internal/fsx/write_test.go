package fsx_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"placer/internal/fsx"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func mustBe(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := fsx.WriteFile(path, text("one")); err != nil {
		t.Fatal(err)
	}
	mustBe(t, path, "one")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fsx.WriteFile(path, text("two")); err != nil {
		t.Fatal(err)
	}
	mustBe(t, path, "two")
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want the old file's 0600", info.Mode())
	}
}

func TestWriteFileFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := fsx.WriteFile(path, text("old")); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("no more")
	err := fsx.WriteFile(path, func(w io.Writer) error {
		io.WriteString(w, "half")
		return reason
	})
	if !errors.Is(err, reason) {
		t.Errorf("error %v, want %v", err, reason)
	}
	mustBe(t, path, "old")
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("folder holds %v, want a.json alone", list)
	}
	if err := fsx.WriteFile(dir, text("x")); err == nil {
		t.Error("writing over a folder succeeded")
	}
	if err := fsx.WriteFile(filepath.Join(dir, "absent", "a"), text("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the folder does not exist", err)
	}
}

func TestWriteFileThroughLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := fsx.WriteFile(link, text("x")); err != nil {
		t.Fatal(err)
	}
	mustBe(t, path, "x")
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "plan.json")
	err = fsx.WriteFile(path, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "whole")
		return err
	})
	data, _ := os.ReadFile(path)
	fmt.Printf("%v %s", err, data)
	// Output: <nil> whole
}
