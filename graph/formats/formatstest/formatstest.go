// Package formatstest owns what the tests of the readers of other programs' files have in
// common: every error is one line that begins with the file's name, and no input panics.
package formatstest

import (
	"strings"
	"testing"
)

// Fault is a document that a reader refuses with an error that holds Want.
type Fault = struct{ Name, Doc, Want string }

// Faults checks that read refuses each document of a file called name.
func Faults[T any](t *testing.T, name string, read func(data []byte, name string) (T, error), all []Fault) {
	t.Helper()
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if _, err := read([]byte(c.Doc), name); !Located(err, name) || !strings.Contains(err.Error(), c.Want) {
				t.Errorf("error %v, want %q", err, c.Want)
			}
		})
	}
}

// Located reports whether err is one line that begins with the file's name.
func Located(err error, name string) bool {
	return err != nil && strings.HasPrefix(err.Error(), name+": ") && !strings.Contains(err.Error(), "\n")
}

// Fuzz checks that no input, of which seeds are the first, makes sniff or read panic, and
// that what is read passes its own check and then, where that is not nil.
func Fuzz[T interface{ Check() error }](f *testing.F, sniff func([]byte) bool, read func(data []byte, name string) (T, error), then func(T) error, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sniff(data)
		x, err := read(data, "f")
		if err != nil {
			return
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		if then != nil {
			if err := then(x); err != nil {
				t.Fatal(err)
			}
		}
	})
}
