package session

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpenCache: a file of measurements either is refused or opens twice with the same.
func FuzzOpenCache(f *testing.F) {
	f.Add([]byte(`{"graph":"g","plan":"p","machine":"m","host":"h","settings":"s","step_time_s":0.1,"overflow_bytes":0,"predicted_step_s":0.1}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "c")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := OpenCache(path)
		if err != nil {
			return
		}
		n := m.len()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if m, err = OpenCache(path); err != nil || m.len() != n {
			t.Fatalf("%v, had %d", err, n)
		}
		m.Close()
	})
}

// FuzzParse: settings either are refused or are read again as they were.
func FuzzParse(f *testing.F) {
	f.Add(Settings{}.String())
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(s.String()); err != nil || again.String() != s.String() {
			t.Errorf("%+v, %v, was %+v", again, err, s)
		}
	})
}
