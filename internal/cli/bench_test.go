package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/compare"
)

// TestGoBenches runs the experiments in small: every method ends with a plan
// that fits, the trials do not depend on the number of workers, and a second run
// into a folder whose trials were cut off ends as the first did.
func TestGoBenches(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, b := range []goBench{goTable3(), goFigure6()} {
		b.matrix.Cases = []compare.Case{{Workload: "rnnlm:layers=2,unroll=3", GPU: "v100", GPUs: 2}}
		b.matrix.Methods = slices.DeleteFunc(slices.Clone(b.matrix.Methods), func(m string) bool {
			return slices.Contains([]string{"place", "schedule", "fuse", "place+schedule", "place+fuse"}, m)
		})
		run := func(dir string, workers, seeds, evaluations int) (string, error) {
			var out, err bytes.Buffer
			still := func() float64 { return 0 }
			c := &console{out: &out, err: &err, clock: still, cpu: still, quiet: true}
			return out.String() + err.String(), c.goBench(context.Background(), b, &goBenchFlags{evaluations: evaluations, seeds: seeds, seed: 1, workers: workers, out: dir})
		}
		one, two := b.name+"-1", b.name+"-2"
		if text, err := run(one, 1, 1, 40); err != nil {
			t.Fatal(err, text)
		}
		first := benchTrials(t, one)
		if len(first) != len(b.matrix.Methods) {
			t.Fatalf("%s: %d trials, want %d", b.name, len(first), len(b.matrix.Methods))
		}
		for _, x := range first {
			if !x.Feasible() || x.StepTime <= 0 || x.Evaluations > 40*annealingFactor {
				t.Errorf("%s: %+v", b.name, x)
			}
		}
		if err := os.MkdirAll(two, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, lines := range map[string]int{compare.MatrixFile: -1, compare.TrialsFile: 2} {
			data, err := os.ReadFile(filepath.Join(one, name))
			if err != nil {
				t.Fatal(err)
			}
			all := strings.SplitAfter(string(data), "\n")
			if lines < 0 {
				lines = len(all)
			}
			if err := os.WriteFile(filepath.Join(two, name), []byte(strings.Join(all[:lines], "")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := run(two, 2, 1, 40); err != nil {
			t.Fatal(err, text)
		}
		second := benchTrials(t, two)
		for i, x := range first {
			if y := second[i]; x.Cell != y.Cell || x.StepTime != y.StepTime || x.Evaluations != y.Evaluations {
				t.Errorf("%s: %s ended at %v, then at %v", b.name, x.Method, x.StepTime, y.StepTime)
			}
		}
		if _, err := run(two, 1, 1, 41); err == nil || !strings.Contains(err.Error(), "other flags") {
			t.Errorf("%s: other flags into a folder: %v", b.name, err)
		}
		if text, err := run(two, 1, 2, 40); err != nil {
			t.Fatal(err, text)
		}
		if third := benchTrials(t, two); len(third) != 2*len(first) || third[0].StepTime != second[0].StepTime {
			t.Errorf("%s: %d trials with a second seed, want %d, those of the first as they were", b.name, len(third), 2*len(first))
		}
	}
}

// TestGoBenchFlags: a workload or machine that is not of the experiment is a
// mistake, and those named are all that run.
func TestGoBenchFlags(t *testing.T) {
	f := goBenchFlags{workloads: []string{"trfxl2", "rnnlm4"}, gpus: []string{"p100"}, evaluations: 1, seeds: 2, seed: 5}
	m, err := f.matrix(goFigure6())
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Cases) != 2 || m.Cases[1].Name() != "rnnlm4 on p100x4" || !slices.Equal(m.Seeds, []uint64{5, 6}) {
		t.Errorf("cases %v, seeds %v", m.Cases, m.Seeds)
	}
	if _, err := f.matrix(goTable3()); err == nil || !strings.Contains(err.Error(), "--gpu p100") {
		t.Errorf("error %v, want one that names the flag", err)
	}
	if n := len(goTable3().matrix.Cases); n != 8 {
		t.Errorf("table 3 has %d rows, want 8", n)
	}
	if n := len(goFigure6().matrix.Cases); n != 18 {
		t.Errorf("figure 6 has %d cases, want 18", n)
	}
}

func benchTrials(t *testing.T, dir string) []compare.Trial {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, compare.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	var c compare.Comparison
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c.Trials
}
