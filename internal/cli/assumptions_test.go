package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/graph/formats"
	"placer/graph/formats/onnx"
	"placer/graph/formats/times"
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
		{"verdict", []string{"verdict", "--graph", model, "--gpu", "a100", "--counts", "1", "--evaluations", "1"}, []string{"! placer: note: " + model + ": " + dimension}, []string{machine}},
		{"its document", []string{"verdict", "--graph", model, "--gpu", "a100", "--counts", "1", "--evaluations", "1", "--json"}, []string{`"assumptions": [`}, nil},
		{"strategies", []string{"strategies", "--workload", "rnnlm:layers=2,unroll=3", "--evaluations", "1"}, []string{"! placer: note: " + machine}, nil},
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

// TestIssuedByTheHost: where times of GPUs come with the host's time to issue a step's
// ops, which no prediction has in it, commands that read them say so.
func TestIssuedByTheHost(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("g.json", []byte(chainsOfOps()), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := formats.ReadFile("g.json", onnx.Default())
	if err != nil {
		t.Fatal(err)
	}
	table := times.Table{GraphHash: x.Graph.Hash(), Source: "a test", Bandwidth: 1e9, Issue: 0.125,
		Models: []times.Model{{Name: "X", Count: 2, Memory: 1 << 30, Seconds: make([]float64, x.Graph.NumOps())}}}
	for i := range table.Models[0].Seconds {
		table.Models[0].Seconds[i] = 1e-6
	}
	for issue, want := range map[float64]bool{0.125: true, 0: false} {
		var b bytes.Buffer
		table.Issue = issue
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("t.json", b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errors := runHere("search", "--graph", "g.json", "--times", "t.json", "--methods", "single", "--evaluations", "1", "-q", "--out", fmt.Sprint("run", issue))
		text := strings.Join(strings.Fields(out+errors), " ")
		if code != 0 || strings.Contains(text, "t.json: predictions leave out the host, which takes 125 ms to issue a step's ops") != want {
			t.Errorf("issued in %v s: exit %d: %s", issue, code, text)
		}
	}
}
