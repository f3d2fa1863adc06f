package fsx_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/internal/fsx"
)

// open returns the lines that the file holds and the file open behind them.
func open(t *testing.T, path string) (all []string, l *fsx.Lines) {
	t.Helper()
	l, err := fsx.OpenLines(path, func(line []byte) error {
		all = append(all, string(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, l
}

// A file that was cut anywhere keeps its whole lines and goes on behind them.
func TestLinesSurviveACut(t *testing.T) {
	const text = "one\ntwo\n\nthree\n"
	for cut := range len(text) + 1 {
		path := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(path, []byte(text[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []string
		if whole := strings.LastIndexByte(text[:cut], '\n'); whole >= 0 {
			want = slices.DeleteFunc(strings.Split(text[:whole], "\n"), func(s string) bool { return s == "" })
		}
		got, l := open(t, path)
		if !slices.Equal(got, want) {
			t.Errorf("cut at %d: %q, want %q", cut, got, want)
		}
		if err := l.Add([]byte("more")); err != nil {
			t.Fatal(err)
		}
		l.Close()
		got, l = open(t, path)
		l.Close()
		if !slices.Equal(got, append(want, "more")) {
			t.Errorf("cut at %d, then added to: %q", cut, got)
		}
	}
}

func TestLinesNameWhatTheyCannotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte("good\nbad\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := fsx.OpenLines(path, func(line []byte) error {
		if string(line) == "bad" {
			return errors.New("not good")
		}
		return nil
	})
	if err == nil || !strings.HasSuffix(err.Error(), "lines: line 2: not good") {
		t.Errorf("got %v", err)
	}
}
