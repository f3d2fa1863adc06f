package main

import (
	"path/filepath"
	"testing"
)

// TestCostsOfOtherSettings: costs of other graphs or of another grid are not taken for those of
// this search.
func TestCostsOfOtherSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "costs")
	first := settings{Seed: 1, Coarse: true}
	lines, known, err := openCosts(file, first)
	if err != nil || known != nil {
		t.Fatalf("%v, %v", known, err)
	}
	if err := add(lines, []float64{3, 4}); err != nil {
		t.Fatal(err)
	}
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	for _, other := range []settings{{Seed: 2, Coarse: true}, {Seed: 1}} {
		if _, _, err := openCosts(file, other); err == nil {
			t.Errorf("%+v goes on with costs of %+v", other, first)
		}
	}
	lines, known, err = openCosts(file, first)
	if err != nil || len(known) != 1 || len(known[0]) != 2 || known[0][1] != 4 {
		t.Fatalf("%v, %v", known, err)
	}
	lines.Close()
}

// TestArguments: what stands behind the flags is an error.
func TestArguments(t *testing.T) {
	if err := run(settings{}, "", []string{"costs"}); err == nil {
		t.Error("an argument passed")
	}
}
