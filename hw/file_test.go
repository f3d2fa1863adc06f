package hw

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMachinesRoundTrip(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			m, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			var buf bytes.Buffer
			if err := m.Write(&buf); err != nil {
				t.Fatal(err)
			}
			again, err := Read(&buf)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(m, again); d != "" {
				t.Errorf("write and read changed the machine:\n%s", d)
			}
			if m.Hash() != again.Hash() {
				t.Error("write and read changed the hash")
			}
		})
	}
}
