package compare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/internal/compare"
)

// A case that stands for something else than when the comparison began is refused, in the
// run that began it and in later ones; folders that say nothing of their cases are not.
func TestSameInputs(t *testing.T) {
	m := matrix([]string{"human"}, 2, 1)
	dir := filepath.Join(t.TempDir(), "c")
	j, err := compare.Create(dir, &m)
	if err != nil {
		t.Fatal(err)
	}
	was := compare.Inputs{Case: m.Cases[0].Name(), Graph: "g", Machine: "m", Predicted: []float64{1, 2}}
	for range 2 {
		if err := j.SameInputs(was); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, _, err = compare.Open(dir); err != nil {
			t.Fatal(err)
		}
	}
	defer j.Close()
	for _, c := range []struct {
		change func(*compare.Inputs)
		want   string
	}{
		{func(*compare.Inputs) {}, ""},
		{func(x *compare.Inputs) { x.Case = m.Cases[1].Name(); x.Graph = "h" }, ""},
		{func(x *compare.Inputs) { x.Graph = "h" }, "another graph than when the comparison in " + dir + " began"},
		{func(x *compare.Inputs) { x.Predicted = []float64{1, 2 + 1e-12} }, ""}, // another processor's rounding
		{func(x *compare.Inputs) { x.Predicted = nil }, ""},
		{func(x *compare.Inputs) { x.Predicted = []float64{1, 2.001} }, "other predictions of the same steps, as by another version of placer, than when"},
		{func(x *compare.Inputs) { x.Machine, x.Times = "n", "t" }, "another machine and another table of op times than"},
	} {
		x := was
		c.change(&x)
		if err := j.SameInputs(x); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", x, err, c.want)
		}
	}
}

// A folder of which nothing more is run gets no file.
func TestInputsFileOnDemand(t *testing.T) {
	m := matrix([]string{"human"}, 1, 1)
	dir := t.TempDir()
	j, err := compare.Create(dir, &m)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, compare.InputsFile)); err == nil {
		t.Error("a file of inputs without a case")
	}
}
