package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRecorded: the tables of README.md are what the rows and their predictions give, every
// prediction has its row, and docs/hardware-models.md has the table by class.
func TestRecorded(t *testing.T) {
	d, seconds, err := read(".")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := write(&want, d, seconds); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, after, err := around(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != before+want.String()+after {
		t.Error("the tables of README.md are not of what is recorded: go run ./experiments/published -table")
	}
	byClass, _, _ := strings.Cut(want.String(), "\n\n")
	docs, err := os.ReadFile("../../docs/hardware-models.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), byClass+"\n") {
		t.Errorf("docs/hardware-models.md does not have this table:\n%s", byClass)
	}
	names := map[string]bool{}
	for _, r := range d.Rows {
		if names[r.Name] {
			t.Errorf("two rows %q", r.Name)
		}
		names[r.Name] = true
	}
	for name := range seconds {
		if !names[name] {
			t.Errorf("a prediction of %q, which is no row", name)
		}
	}
}

// TestPredicted: commands give the steps that are recorded, one command of every form.
func TestPredicted(t *testing.T) {
	d, seconds, err := read(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	for _, name := range []string{"ResNet-101, mixed, 1024 images, RTX 3090", "GPT 2B, FP16, 16 x 1024, 2 A100, recomputed", "MPT 125M, 8 x 128 x 2 of 512, A100", "Llama 2 7B, BF16, 2 A100, gpt-fast"} {
		k := slices.IndexFunc(d.Rows, func(r row) bool { return r.Name == name })
		if k < 0 {
			t.Fatalf("no row %q", name)
		}
		got, err := predict(d.Rows[k].Command)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if math.Abs(got/seconds[name]-1) > 1e-6 {
			t.Errorf("%s: %g s, recorded %g", name, got, seconds[name])
		}
	}
}

// TestStepOf reads the step of a strategy and of a search, and refuses what has none.
func TestStepOf(t *testing.T) {
	for text, want := range map[string]float64{
		`{"rows": [{"name": "as asked", "step_time_s": 2}], "best": "as asked"}`:   2,
		`{"rows": [{"name": "as asked", "step_time_s": 2}]}`:                       2, // it does not fit
		`{"rows": [{"method": "single", "value": 3}], "best": {"step_time_s": 3}}`: 3,
	} {
		if got, err := stepOf([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %g, %v; want %g", text, got, err, want)
		}
	}
	for _, text := range []string{`{"rows": [{"why": "no"}]}`, `{}`, `[]`} {
		if got, err := stepOf([]byte(text)); err == nil {
			t.Errorf("%s: %g", text, got)
		}
	}
}
