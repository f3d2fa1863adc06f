package gonet

import (
	"bytes"
	"testing"
)

// FuzzLoad: a checkpoint either is refused or is saved again.
func FuzzLoad(f *testing.F) {
	var w bytes.Buffer
	if err := newNetwork(f, small(6, 4), 1, 1).Save(&w, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Replace(w.Bytes(), []byte(`"sha256"`), []byte(`"sha255"`), 1)) // no checksum, which refuses all that is changed
	f.Fuzz(func(t *testing.T, data []byte) {
		n, extra, err := Load(bytes.NewReader(data), backend(t, 1))
		if err != nil {
			return
		}
		if err := n.Save(&bytes.Buffer{}, extra); err != nil {
			t.Error(err)
		}
	})
}
