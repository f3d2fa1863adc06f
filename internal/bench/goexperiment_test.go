package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/hw"
	"placer/internal/compare"
	"placer/placer/problem"
	"placer/workloads"
)

// TestGoBenches runs the experiments in small: every method ends with a plan
// that fits, the trials do not depend on the number of workers, and a second run
// into a folder whose trials were cut off ends as the first did.
func TestGoBenches(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, b := range []GO{GOTable3(), GOFigure6()} {
		b.Matrix.Cases = []compare.Case{{Workload: "rnnlm:layers=2,unroll=3", GPU: "v100", GPUs: 2}}
		b.Matrix.Methods = slices.DeleteFunc(slices.Clone(b.Matrix.Methods), func(m string) bool {
			return slices.Contains([]string{"place", "schedule", "fuse", "place+schedule", "place+fuse"}, m)
		})
		run := func(dir string, workers, seeds, evaluations int) error {
			m := b.Matrix
			m.Format, m.Evaluations = compare.MatrixFormat, evaluations
			var err error
			if m.Seeds, err = Seeds(1, seeds); err != nil {
				return err
			}
			j, whole, err := OpenJournal(dir, &m)
			if err != nil {
				return err
			}
			defer j.Close()
			_, err = Run(context.Background(), &m, whole, j, workers, b.Trials(&m, builtIn, still), b.Tables, Host{Log: func(string, ...any) {}})
			return err
		}
		one, two := b.Name+"-1", b.Name+"-2"
		if err := run(one, 1, 1, 40); err != nil {
			t.Fatal(err)
		}
		first := benchTrials(t, one)
		if len(first) != len(b.Matrix.Methods) {
			t.Fatalf("%s: %d trials, want %d", b.Name, len(first), len(b.Matrix.Methods))
		}
		for _, x := range first {
			if !x.Feasible() || x.StepTime <= 0 || x.Evaluations > 40*annealingFactor {
				t.Errorf("%s: %+v", b.Name, x)
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
		if err := run(two, 2, 1, 40); err != nil {
			t.Fatal(err)
		}
		second := benchTrials(t, two)
		for i, x := range first {
			if y := second[i]; x.Cell != y.Cell || x.StepTime != y.StepTime || x.Evaluations != y.Evaluations {
				t.Errorf("%s: %s ended at %v, then at %v", b.Name, x.Method, x.StepTime, y.StepTime)
			}
		}
		if err := run(two, 1, 1, 41); err == nil || !strings.Contains(err.Error(), "other flags") {
			t.Errorf("%s: other flags into a folder: %v", b.Name, err)
		}
		if err := run(two, 1, 2, 40); err != nil {
			t.Fatal(err)
		}
		if third := benchTrials(t, two); len(third) != 2*len(first) || third[0].StepTime != second[0].StepTime {
			t.Errorf("%s: %d trials with a second seed, want %d, those of the first as they were", b.Name, len(third), 2*len(first))
		}
	}
}

// TestGoBenchOfFewEvaluations: a method whose budget is too small for a placement is unavailable, and
// the others end.
func TestGoBenchOfFewEvaluations(t *testing.T) {
	g := GOFigure6()
	m := g.Matrix
	m.Format, m.Evaluations, m.Seeds = compare.MatrixFormat, 2, []uint64{1}
	m.Cases = []compare.Case{{Workload: "rnnlm:layers=2,unroll=3", GPU: "v100", GPUs: 2}}
	j, whole, err := OpenJournal(filepath.Join(t.TempDir(), "few"), &m)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := Run(t.Context(), &m, whole, j, 1, g.Trials(&m, builtIn, still), g.Tables, Host{Log: func(string, ...any) {}}); err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, x := range j.Trials() {
		if x.Skipped != "" {
			skipped++
		}
	}
	if n := len(j.Trials()); n != len(m.Methods) || skipped == 0 || skipped == n {
		t.Errorf("%d of %d trials have no placement", skipped, n)
	}
}

// TestCasesAreReleased: a case is let go when its last trial has ended, though some ended in
// an earlier run.
func TestCasesAreReleased(t *testing.T) {
	m := compare.Matrix{Format: compare.MatrixFormat, Methods: []string{"single", "human"}, Against: "single", Scheduler: "fifo", Evaluations: 1, Seeds: []uint64{1, 2},
		Cases: []compare.Case{{Workload: "rnnlm:layers=2,unroll=3", GPU: "v100", GPUs: 2}}}
	j, err := compare.Create(filepath.Join(t.TempDir(), "c"), &m)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	first := m
	first.Seeds = m.Seeds[:1]
	for _, part := range []*compare.Matrix{&first, &m} {
		cases := NewCases(part, builtIn, still)
		if _, err := Run(t.Context(), part, &m, j, 1, cases, NewComparison, Host{Log: func(string, ...any) {}}); err != nil {
			t.Fatal(err)
		}
		for _, e := range cases.entries {
			if e.placement != nil || e.source.Graph != nil || e.left != 0 {
				t.Errorf("after %d seeds the graph is still there, %d trials are left", len(part.Seeds), e.left)
			}
		}
	}
	if len(j.Trials()) != 4 {
		t.Errorf("%d trials, want 4", len(j.Trials()))
	}
}

// TestGoBenchFlags: a workload or machine that is not of the experiment is a
// mistake, and those named are all that run.
func TestGoBenchFlags(t *testing.T) {
	r := GORun{Workloads: []string{"trfxl2", "rnnlm4"}, GPUs: []string{"p100"}, Evaluations: 1, Seeds: 2, Seed: 5}
	m, err := GOFigure6().Select(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Cases) != 2 || m.Cases[1].Name() != "rnnlm4 on p100x4" || !slices.Equal(m.Seeds, []uint64{5, 6}) {
		t.Errorf("cases %v, seeds %v", m.Cases, m.Seeds)
	}
	if _, err := GOTable3().Select(r); err == nil || !strings.Contains(err.Error(), "--gpu p100") {
		t.Errorf("error %v, want one that names the flag", err)
	}
	if n := len(GOTable3().Matrix.Cases); n != 8 {
		t.Errorf("table 3 has %d rows, want 8", n)
	}
	if n := len(GOFigure6().Matrix.Cases); n != 18 {
		t.Errorf("figure 6 has %d cases, want 18", n)
	}
}

// still is a clock that stands still.
func still() float64 { return 0 }

// builtIn loads a case of built-in things.
func builtIn(x compare.Case) (problem.Source, *hw.Machine, error) {
	g, err := workloads.Build(x.Workload)
	if err != nil {
		return problem.Source{}, nil, err
	}
	m, err := hw.Take(x.GPU, x.GPUs, false)
	return problem.Source{Graph: g}, m, err
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
