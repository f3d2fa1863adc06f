// Package doctest owns the parts of documents that tests hold: a table between two marks
// that is what the code says, and code that a test compiles.
package doctest

import (
	"os"
	"strings"
	"testing"
)

// Part returns what stands between begin and end in the document path, and what puts
// another text in its place.
func Part(t testing.TB, path, begin, end string) (stated string, replace func(text string)) {
	t.Helper()
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(doc), begin)
	stated, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no marks %q and %q", path, begin, end)
	}
	return stated, func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(head+begin+text+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
