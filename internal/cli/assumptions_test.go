package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAssumptions: what the inputs leave open stands under a search's table and in its
// document, and on stderr for other commands; each says how it is set.
func TestAssumptions(t *testing.T) {
	model, err := filepath.Abs("../../graph/formats/onnx/testdata/functions.onnx")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	const dimension, machine = "dimension batch has no value and is taken as 1; --dim batch=N sets it", "no machine is named: p100, 8 P100-PCIe-16GB"
	search := []string{"search", "--graph", model, "--methods", "single", "--evaluations", "1", "-q"}
	for _, c := range []struct {
		name       string
		args       []string
		want, lack []string
	}{
		{"search", append(search, "--out", "a"), []string{"assumed: " + model + ": " + dimension, "assumed: " + machine}, nil},
		{"document", append(search, "--json", "--out", "b"), []string{`"assumptions": [`, dimension, machine}, nil},
		{"all said", append(search, "--dim", "batch=8", "--gpu", "a100", "--out", "c"), nil, []string{"assumed", "batch"}},
		{"import", []string{"import", "--graph", model}, []string{"! placer: note: " + model + ": " + dimension, "dimension batch"}, []string{machine}},
		{"simulate", []string{"simulate", "--graph", model, "--plan", "a/plan.json"}, []string{"! placer: note: " + machine}, nil},
	} {
		out := command(t, c.args)
		for _, w := range c.want {
			if !strings.Contains(out, w) && !strings.Contains(strings.Join(strings.Fields(out), " "), w) { // lines are folded
				t.Errorf("%s lacks %q:\n%s", c.name, w, out)
			}
		}
		for _, w := range c.lack {
			if strings.Contains(out, w) {
				t.Errorf("%s has %q:\n%s", c.name, w, out)
			}
		}
	}
}
