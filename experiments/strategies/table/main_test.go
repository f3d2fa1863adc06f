package main

import (
	"bytes"
	"os"
	"testing"
)

// TestRecorded: TABLE.md is what the documents give (make table-strategies).
func TestRecorded(t *testing.T) {
	all, err := read("..")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := write(&got, all); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../TABLE.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, got.Bytes()) {
		t.Errorf("TABLE.md is not what the documents give: make table-strategies")
	}
}

// TestPlacement: on every row where both fit, the placement is at least as good as 1F1B over exact
// stages.
func TestPlacement(t *testing.T) {
	all, err := read("..")
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for k := range all {
		d := &all[k]
		share, ok := d.beside()
		if !ok {
			continue
		}
		held++
		if share > 1e-9 {
			t.Errorf("%s on %s: the placement is %+.2f%% longer than 1F1B", d.Model, d.On, 100*share)
		}
		if s := d.short(); s != "" {
			t.Logf("%s on %s: %s, %+.1f%%", d.Model, d.On, s, 100*share)
		}
	}
	if held == 0 {
		t.Error("no document has both")
	}
}
