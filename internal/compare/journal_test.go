package compare_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"placer/internal/compare"
	"placer/plan"
)

func progress(seconds float64) plan.Progress {
	return plan.Progress{Evaluations: 1, Best: plan.Score{Value: seconds}}
}

// do gives every cell a step time of its own.
func do(_ context.Context, c compare.Cell) (compare.Trial, error) {
	return compare.Trial{Cell: c, StepTime: float64(len(c.Case)*100+len(c.Method)*10) + float64(c.Seed), Evaluations: 10}, nil
}

// A comparison that is stopped in its middle, or killed while it wrote, goes on
// to the same summary.
func TestResume(t *testing.T) {
	m := matrix([]string{"human", "ours"}, 3, 4)
	whole, err := compare.Create(filepath.Join(t.TempDir(), "whole"), &m)
	if err != nil {
		t.Fatal(err)
	}
	if err := compare.Run(context.Background(), &m, whole, compare.Host{Workers: 3, Trial: do}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "stopped")
	j, err := compare.Create(dir, &m)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = compare.Run(ctx, &m, j, compare.Host{Workers: 2, Trial: do, Ended: func(_ *compare.Trial, done, all int) {
		if all != 24 {
			t.Errorf("%d of %d", done, all)
		}
		if done == 5 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped run returned %v", err)
	}
	if n := len(j.Trials()); n < 5 || n == 24 || !compare.Summarise(m, j.Trials()).Interrupted {
		t.Fatalf("%d trials after the stop", n)
	}
	j.Close()
	torn, err := os.OpenFile(filepath.Join(dir, compare.TrialsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := torn.WriteString(`{"case":"w0 on p1`); err != nil {
		t.Fatal(err)
	}
	torn.Close()
	j, again, err := compare.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	before := len(j.Trials())
	var ran atomic.Int32
	if err := compare.Run(context.Background(), again, j, compare.Host{Workers: 2, Trial: func(ctx context.Context, c compare.Cell) (compare.Trial, error) {
		ran.Add(1)
		return do(ctx, c)
	}}); err != nil {
		t.Fatal(err)
	}
	if int(ran.Load())+before != 24 {
		t.Errorf("%d trials before, %d after", before, ran.Load())
	}
	if a, b := encode(t, compare.Summarise(m, whole.Trials())), encode(t, compare.Summarise(*again, j.Trials())); string(a) != string(b) {
		t.Error("the resumed comparison differs from the whole one")
	}
}

// What is done counts against the cells that are asked for: trials of others,
// which a folder has from an earlier call, are not among them.
func TestRunCountsItsOwnCells(t *testing.T) {
	all := matrix([]string{"human"}, 2, 2)
	j, err := compare.Create(t.TempDir(), &all)
	if err != nil {
		t.Fatal(err)
	}
	first, second := all, all
	first.Cases, second.Cases = all.Cases[:1], all.Cases[1:]
	if err := compare.Run(context.Background(), &first, j, compare.Host{Workers: 1, Trial: do}); err != nil {
		t.Fatal(err)
	}
	var counts []int
	if err := compare.Run(context.Background(), &second, j, compare.Host{Workers: 1, Trial: do, Ended: func(_ *compare.Trial, done, all int) {
		counts = append(counts, done, all)
	}}); err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2, 2, 2}; !slices.Equal(counts, want) {
		t.Errorf("done and all: %v, want %v", counts, want)
	}
}

func TestRunStopsAtAnError(t *testing.T) {
	m := matrix([]string{"human"}, 1, 20)
	j, err := compare.Create(t.TempDir(), &m)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err = compare.Run(context.Background(), &m, j, compare.Host{Workers: 2, Trial: func(ctx context.Context, c compare.Cell) (compare.Trial, error) {
		if c.Seed == 3 {
			return compare.Trial{}, broken
		}
		return do(ctx, c)
	}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "human on w0 on p100x2, seed 3") {
		t.Errorf("error %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	m := matrix([]string{"human"}, 1, 1)
	for _, c := range []struct{ name, file, text, want string }{
		{"no folder", "", "", "is no folder of a comparison"},
		{"not JSON", compare.MatrixFile, "{", "matrix.json: the document ends early"},
		{"unknown key", compare.MatrixFile, `{"formt": 1}`, `unknown field "formt"`},
		{"wrong trial", compare.TrialsFile, `{"case":"w9 on p100x2","method":"human","seed":1}` + "\n", "w9 on p100x2 with seed 1 is not of this comparison"},
		{"second trial", compare.TrialsFile, strings.Repeat(`{"case":"w0 on p100x2","method":"human","seed":1}`+"\n", 2), "line 2: a second trial"},
		{"broken trial", compare.TrialsFile, "{}}\n", "line 1: "},
		{"broken inputs", compare.InputsFile, "{\"graph\":1}\n", "inputs.jsonl: line 1: "},
		{"second inputs", compare.InputsFile, strings.Repeat(`{"case":"w0 on p100x2"}`+"\n", 2), "line 2: w0 on p100x2 a second time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.file != "" {
				j, err := compare.Create(dir, &m)
				if err != nil {
					t.Fatal(err)
				}
				j.Close()
				if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := compare.Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := compare.Create(".", &m); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("error %v", err)
	}
}

// TestMatrixWith: cases and seeds add up, in the order they came; what else
// differs is refused.
func TestMatrixWith(t *testing.T) {
	a := &compare.Matrix{Format: compare.MatrixFormat, Methods: []string{"x"}, Against: "x", Evaluations: 1, Cases: []compare.Case{{Workload: "a", GPU: "v100"}}, Seeds: []uint64{3}}
	b := *a
	b.Cases, b.Seeds = []compare.Case{{Workload: "a", GPU: "p100"}, {Workload: "a", GPU: "v100"}}, []uint64{2, 3}
	got, err := a.With(&b)
	if err != nil {
		t.Fatal(err)
	}
	if want := []compare.Case{{Workload: "a", GPU: "v100"}, {Workload: "a", GPU: "p100"}}; !slices.Equal(got.Cases, want) || !slices.Equal(got.Seeds, []uint64{3, 2}) {
		t.Errorf("cases %v, seeds %v", got.Cases, got.Seeds)
	}
	b.Evaluations = 2
	if _, err := a.With(&b); err == nil {
		t.Error("another budget was added")
	}
}
