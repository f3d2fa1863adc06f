package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"placer/placer/strategies"
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

// TestComplete: six models on nine machines each are recorded. A document of several devices has
// the placement's row, which comes last; one of a run that was stopped lacks it.
func TestComplete(t *testing.T) {
	all, err := read("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"llama", "llama70b", "moe", "vitl", "gnmt8", "resnet50"} {
		for _, on := range []string{"a100-1", "a100-2", "a100-4", "a100-8", "h100-1", "h100-2", "h100-4", "h100-8", "box"} {
			if _, err := os.Stat(fmt.Sprintf("../%s-%s.json", model, on)); err != nil {
				t.Error(err)
			}
		}
	}
	for k := range all {
		d := &all[k]
		if len(d.Rows) > 1 && d.Rows[len(d.Rows)-1].Name != strategies.NamePlacement {
			t.Errorf("%s on %s ends with %s", d.Model, d.On, d.Rows[len(d.Rows)-1].Name)
		}
	}
}

// TestPlacement: on every row where both fit, the placement is at least as good as 1F1B over exact
// stages, and better by 5% where the model branches.
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
		if s := d.short(); s != "" {
			t.Errorf("%s on %s: %s, the placement's step is %+.2f%% beside 1F1B", d.Model, d.On, s, 100*share)
		}
	}
	if held == 0 {
		t.Error("no document has both")
	}
}
