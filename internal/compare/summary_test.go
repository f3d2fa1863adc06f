package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/internal/compare"
	"placer/plan"
)

func matrix(methods []string, cases, seeds int) compare.Matrix {
	m := compare.Matrix{Format: compare.MatrixFormat, Methods: methods, Against: methods[0], Scheduler: "fifo", Evaluations: 10}
	for i := range cases {
		m.Cases = append(m.Cases, compare.Case{Workload: fmt.Sprint("w", i), GPU: "p100", GPUs: 2})
	}
	for i := range seeds {
		m.Seeds = append(m.Seeds, uint64(i+1))
	}
	return m
}

// drawTrials makes trials for every cell of m.
func drawTrials(t *rapid.T, m compare.Matrix) []compare.Trial {
	var trials []compare.Trial
	for _, c := range m.Cells() {
		x := compare.Trial{Cell: c, LowerBound: 0.5, Evaluations: rapid.IntRange(1, 20).Draw(t, "evaluations"), Seconds: rapid.Float64Range(0.1, 9).Draw(t, "seconds")}
		switch rapid.IntRange(0, 9).Draw(t, "fate") {
		case 0:
			x.Skipped = "no such program"
		case 1:
			x.StepTime, x.Overflow = 1, 5
		default:
			x.StepTime = float64(rapid.IntRange(1, 8).Draw(t, "time"))
			x.Improvements = []compare.Improvement{{1, x.Seconds / 4, x.StepTime * 2}, {x.Evaluations, x.Seconds / 2, x.StepTime}}
		}
		trials = append(trials, x)
	}
	return trials
}

// Wins, ties, losses and the geometric mean again, from their definitions.
func TestSummariseAgainstDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := matrix([]string{"human", "ours"}, rapid.IntRange(1, 4).Draw(t, "cases"), rapid.IntRange(1, 8).Draw(t, "seeds"))
		trials := drawTrials(t, m)
		got := compare.Summarise(m, trials)
		shuffled := rapid.Permutation(trials).Draw(t, "order")
		if a, b := encode(t, got), encode(t, compare.Summarise(m, shuffled)); !bytes.Equal(a, b) {
			t.Fatal("the order in which trials end changes the summary")
		}
		time := func(c compare.Case, method string, seed uint64) float64 {
			for _, x := range trials {
				if x.Case == c.Name() && x.Method == method && x.Seed == seed && x.Feasible() {
					return x.StepTime
				}
			}
			return math.Inf(1)
		}
		wins, ties, losses, failed, fits, product, n := 0, 0, 0, 0, 0, 1.0, 0
		worst, worstCase := 0.0, ""
		for _, c := range m.Cases {
			var ours, theirs []float64
			for _, s := range m.Seeds {
				a, b := time(c, "ours", s), time(c, "human", s)
				ours, theirs = append(ours, a), append(theirs, b)
				switch {
				case a < b:
					wins++
				case a > b:
					losses++
				case !math.IsInf(a, 1):
					ties++
				}
				if !math.IsInf(b, 1) {
					fits++
				}
			}
			a, b := compare.Median(ours), compare.Median(theirs)
			if !math.IsInf(a, 1) && !math.IsInf(b, 1) {
				product *= a / b
				n++
				if a/b-1 > worst {
					worst, worstCase = a/b-1, c.Name()
				}
			}
			if math.IsInf(a, 1) {
				failed++
			}
		}
		total := got.Totals[1]
		if total.Wins != wins || total.Ties != ties || total.Losses != losses {
			t.Fatalf("%d wins, %d ties, %d losses; want %d, %d and %d", total.Wins, total.Ties, total.Losses, wins, ties, losses)
		}
		if total.Cases != n || total.Failed != failed || (total.Reduction != nil) != (n > 0) {
			t.Fatalf("%d cases, %d failed, want %d and %d", total.Cases, total.Failed, n, failed)
		}
		if want := 1 - math.Pow(product, 1/float64(n)); n > 0 && math.Abs(*total.Reduction-want) > 1e-9 {
			t.Fatalf("reduction %v, want %v", *total.Reduction, want)
		}
		if total.WorstCase != worstCase || math.Abs(total.Worst-worst) > 1e-9 {
			t.Fatalf("%g longer at worst, on %q; want %g on %q", total.Worst, total.WorstCase, worst, worstCase)
		}
		if r := got.Totals[0]; r.Ties != fits || r.Worst != 0 {
			t.Fatalf("the reference against itself: %+v", r)
		}
	})
}

func encode(t rapid.TB, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRatios(t *testing.T) {
	m := matrix([]string{"slow", "fast"}, 1, 1)
	c := m.Cells()
	got := compare.Summarise(m, []compare.Trial{
		{Cell: c[0], StepTime: 2, Evaluations: 100, Seconds: 50, Improvements: []compare.Improvement{{1, 1, 9}, {80, 40, 2}}},
		{Cell: c[1], StepTime: 1, Evaluations: 100, Seconds: 10, Improvements: []compare.Improvement{{1, 1, 9}, {8, 4, 1.5}, {90, 9, 1}}},
	})
	r := got.Rows[1]
	if *r.SearchRatio != 10 || *r.EvaluationRatio != 10 || *r.Reduction != 0.5 || r.Low != nil || r.Gap != nil {
		t.Errorf("row %+v: want ten times sooner by seconds (40 against 4) and evaluations (80 against 8)", r)
	}
}

func TestRecorderKeepsEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := 0.0
		r := compare.Recorder{Clock: func() float64 { return clock }}
		best := math.Inf(1)
		for range rapid.IntRange(0, 40).Draw(t, "reports") {
			clock++
			r.Observe(progress(rapid.Float64Range(0.999, 1).Draw(t, "step") * min(best, 10)))
			best = min(best, last(r))
		}
		xs := r.Improvements()
		if !slices.IsSortedFunc(xs, func(a, b compare.Improvement) int { return int(math.Copysign(1, b.StepTime-a.StepTime)) }) {
			t.Fatalf("improvements do not improve: %v", xs)
		}
	})
}

// Between the ends, what is no thousandth better than the one kept before is left out, and so is
// what does not fit.
func TestRecorderLeavesOut(t *testing.T) {
	clock := 0.0
	r := compare.Recorder{Clock: func() float64 { clock++; return clock }}
	r.Observe(plan.Progress{Best: plan.Score{Value: 0.2, Overflow: 1}})
	for _, step := range []float64{1, 0.9999, 0.9998, 0.5, 0.4999} {
		r.Observe(progress(step))
	}
	var steps []float64
	for _, x := range r.Improvements() {
		steps = append(steps, x.StepTime)
	}
	if !slices.Equal(steps, []float64{1, 0.5, 0.4999}) {
		t.Errorf("kept %v", steps)
	}
}

func last(r compare.Recorder) float64 {
	xs := r.Improvements()
	return xs[len(xs)-1].StepTime
}

// A comparison by another objective names its unit, and its audit holds the
// document to it.
func TestUnit(t *testing.T) {
	m := matrix([]string{"human", "ours"}, 1, 2)
	m.Objective, m.Contention = plan.Memory, "none"
	var trials []compare.Trial
	for k, c := range m.Cells() {
		trials = append(trials, compare.Trial{Cell: c, StepTime: float64(1+k) * 1e9, LowerBound: 1e9})
	}
	good := encode(t, compare.Summarise(m, trials))
	if found, _, err := compare.Audit(good); err != nil || len(found) > 0 {
		t.Fatalf("found %v, error %v", found, err)
	}
	bad := strings.Replace(string(good), `"unit":"bytes"`, `"unit":"s"`, 1)
	if found, _, err := compare.Audit([]byte(bad)); err != nil || len(found) != 1 || found[0].Place != "unit" {
		t.Errorf("found %v, error %v in a file of another unit", found, err)
	}
}

// A graph's own machine is a case; a machine's and a GPU's at once is none.
func TestCases(t *testing.T) {
	m := matrix([]string{"human"}, 1, 1)
	for _, c := range []struct {
		compare.Case
		name string
		ok   bool
	}{
		{compare.Case{Graph: "a.json"}, "a.json on its own machine", true},
		{compare.Case{Graph: "a.json", GPUs: 3}, "a.json on its own machine, x3", true},
		{compare.Case{Workload: "gnmt2"}, "gnmt2 on ", false},
		{compare.Case{Graph: "a.json", GPU: "p100", Machine: "m.json"}, "a.json on p100m.json", false},
	} {
		m.Cases = []compare.Case{c.Case}
		if err := m.Validate(); c.Name() != c.name || (err == nil) != c.ok {
			t.Errorf("%q: error %v, want %v of %q", c.Name(), err, c.ok, c.name)
		}
	}
}
