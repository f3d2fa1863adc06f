//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/measure/python/pythontest"
)

// chainsOfOps is a captured graph of two chains that meet, where the simulator finds
// two devices faster than one.
func chainsOfOps() string {
	var b strings.Builder
	b.WriteString(`{"format": "placer graph 1", "name": "chains", "ops": [` + "\n" + `{"name": "x", "kind": "Placeholder", "out": [{"shape": [64, 64]}]}`)
	last := [2]string{"x", "x"}
	for k := range 6 {
		for c := range 2 {
			name := fmt.Sprintf("mm%d.%d", c, k)
			fmt.Fprintf(&b, ",\n"+`{"name": %q, "kind": "MatMul", "flops": 134217728, "gemm": [1, 1024, 64, 1024], "in": [%q, %q], "out": [{"shape": [64, 64]}]}`, name, last[c], last[c])
			last[c] = name
		}
	}
	fmt.Fprintf(&b, ",\n"+`{"name": "y", "kind": "AddV2", "in": [%q, %q], "out": [{"shape": [64, 64]}]}]}`, last[0], last[1])
	return b.String()
}

// torchSearch returns the command line of a short search whose steps the stand-in runs.
func torchSearch(t *testing.T, behaviour, evaluator string, more ...string) (dir string, args []string) {
	t.Helper()
	dir = t.TempDir()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(pythontest.Behaviour, behaviour)
	for name, text := range map[string]string{"graph.json": chainsOfOps(), "machine.json": twoCores} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, append([]string{"search", "--graph", filepath.Join(dir, "graph.json"), "--machine", filepath.Join(dir, "machine.json"), "--cpu", "--methods", "single,human,GO-one",
		"--evaluations", "64", "--workers", "1", "--evaluator", evaluator, "--runtime", "torch", "--python", me}, more...)
}

// TestSearchOnTorch: rows and rewards are what the runtime measured, each placement
// once; a second search takes all of them from the file and comes to the same plan.
func TestSearchOnTorch(t *testing.T) {
	for _, evaluator := range []string{"hardware", "both"} {
		dir, args := torchSearch(t, pythontest.Serves, evaluator)
		memo := filepath.Join(dir, "memo.jsonl")
		args = append(args, "--config", settingsFile(t, `"measurements": "`+memo+`"`, `"measuring": {"repeats": 3}`))
		code, stdout, stderr := runHere(append(args, "--out", filepath.Join(dir, "1"))...)
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", evaluator, code, stderr)
		}
		if want := "step times are measured (torch, virtual clock, least of two rounds of 3"; !strings.Contains(stdout, want) {
			t.Errorf("%s: no %q in\n%s", evaluator, want, stdout)
		}
		first := result(t, filepath.Join(dir, "1"))
		lines := read(t, dir, "memo.jsonl")
		m := first.Measured
		if m.Placements != bytes.Count(lines, []byte("\n")) || m.Placements < 5 || m.Failed != 0 || m.Runtime != "torch" || !strings.HasPrefix(m.Host, "torch 0.0-stand-in, ") {
			t.Errorf("%s: %+v with %d lines in the file", evaluator, m, bytes.Count(lines, []byte("\n")))
		}
		if first.Evaluations > 64+len(first.Rows) {
			t.Errorf("%s: %d evaluations of a budget of 64", evaluator, first.Evaluations)
		}
		for _, r := range first.Rows {
			if r.Predicted == nil || math.Abs(r.StepTime / *r.Predicted - pythontest.Factor) > 1e-9 || r.Unmeasured != "" {
				t.Errorf("%s: %s: measured %v beside %v", evaluator, r.Method, r.StepTime, r.Predicted)
			}
		}
		if first.Tasks != "place,schedule" {
			t.Errorf("%s: tasks %q", evaluator, first.Tasks)
		}
		if code, _, stderr := runHere(append(args, "--out", filepath.Join(dir, "2"))...); code != 0 {
			t.Fatalf("%s: exit %d: %s", evaluator, code, stderr)
		}
		if k := result(t, filepath.Join(dir, "2")).Measured; k.Placements != 0 || k.Known != m.Placements+m.Known {
			t.Errorf("%s: with the file %+v, without %+v", evaluator, k, m)
		}
		if a, b := read(t, dir, "1/plan.json"), read(t, dir, "2/plan.json"); !bytes.Equal(a, b) {
			t.Errorf("%s: another plan with the file than without", evaluator)
		}
	}
}

// TestSearchLearnsFromTorch: where the second device is slow in real steps, which the
// simulator does not know, the policy leaves it.
func TestSearchLearnsFromTorch(t *testing.T) {
	dir, args := torchSearch(t, pythontest.Slow, "hardware", "--evaluations", "600")
	if code, _, stderr := runHere(append(args, "--out", filepath.Join(dir, "run"))...); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	r := result(t, filepath.Join(dir, "run"))
	human, b := r.Rows[0], r.Rows[2]
	if b.Method != "GO-one" || *b.Predicted <= *human.Predicted || math.Abs(b.StepTime / *b.Predicted - pythontest.Factor) > 1e-9 || human.StepTime < 10*b.StepTime {
		t.Errorf("best %s, %v, predicted %v; human %v, predicted %v", b.Method, b.StepTime, *b.Predicted, human.StepTime, *human.Predicted)
	}
	if out, err := os.ReadFile(filepath.Join(dir, "run", "result.json")); err != nil || !bytes.Contains(out, []byte(`"runtime": "torch"`)) {
		t.Errorf("%v: the result does not say the runtime", err)
	}
	// what the run wrote is enough to go on
	if err := os.Remove(filepath.Join(dir, "run", "result.json")); err != nil {
		t.Fatal(err)
	}
	me, _ := os.Executable()
	if code, _, stderr := runHere("search", "--resume", filepath.Join(dir, "run"), "--python", me, "--workers", "1"); code != 0 {
		t.Fatalf("resumed: exit %d: %s", code, stderr)
	}
	if k := result(t, filepath.Join(dir, "run")).Measured; k.Runtime != "torch" || k.Placements != 0 {
		t.Errorf("resumed: %+v", k)
	}
}

// TestSearchOnTorchErrors: one line says why, and where nothing could be measured no
// folder is made.
func TestSearchOnTorchErrors(t *testing.T) {
	for _, c := range []struct {
		behaviour string
		args      []string
		code      int
		want      string
		folder    bool
	}{
		{"", []string{"--python", "no-such-python"}, 4, "no PyTorch", false},
		{pythontest.NoTorch, nil, 4, "No module named 'torch'", false},
		{pythontest.Serves, []string{"--machine", "", "--gpu", "p100", "--gpus", "2"}, 4, "machine p100", false},
		{pythontest.Serves, []string{"--tasks", "place,fuse"}, 2, "PyTorch's steps run op by op", false},
		{pythontest.Serves, []string{"--evaluator", "roofline"}, 2, "--runtime torch goes with --evaluator hardware or both", false},
		{pythontest.Serves, []string{"--runtime", "jax"}, 2, "--runtime jax: want kernels or torch", false},
		{pythontest.Serves, []string{"--runtime", "kernels"}, 2, "--python goes with --runtime torch", false},
		{pythontest.Serves, []string{"--graph", "", "--workload", "rnnlm2"}, 2, "--runtime torch wants --graph FILE", false},
		{pythontest.Serves, []string{"--config", settingsFile(t, `"measuring": {"clock": "sun"}`)}, 2, `clock "sun" of measuring`, false},
		{pythontest.Serves, []string{"--config", settingsFile(t, `"measuring": {"logical": true}`)}, 2, "do not go with runtime torch", false},
		{pythontest.Serves, []string{"--config", settingsFile(t, `"hub": {"address": "127.0.0.1:1"}`)}, 2, "leave out the hub", false},
		{pythontest.Fails, nil, 1, "3 measurements in a row failed, the last: request: op mm is not in the step", true},
		{pythontest.Dies, nil, 1, "worker cpu:1: op mm: killed", true},
		{pythontest.Unequal, nil, 1, "the results are not those of one device", true},
	} {
		dir, args := torchSearch(t, c.behaviour, "hardware", c.args...)
		code, stdout, stderr := runHere(append(args, "--out", filepath.Join(dir, "run"))...)
		last := stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:]
		if code != c.code || (stdout == "") == c.folder || !strings.Contains(last, c.want) {
			t.Errorf("%q %v: exit %d, stdout %q, stderr %q; want exit %d and %q", c.behaviour, c.args, code, stdout, stderr, c.code, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "run")); (err == nil) != c.folder {
			t.Errorf("%q %v: run folder: %v", c.behaviour, c.args, err)
		}
	}
}
