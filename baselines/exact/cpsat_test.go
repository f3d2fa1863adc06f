package exact

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"placer/plan"
	"slices"
	"strings"
	"testing"

	"placer/baselines/exact/cpsat"
	"placer/sim"
)

func solver(t *testing.T) {
	t.Helper()
	if _, err := cpsat.Open(""); errors.Is(err, cpsat.ErrUnavailable) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// TestSolverAgainstSearch: the solver's bound never exceeds the optimum that the
// branch and bound proves, and what it calls optimal is.
func TestSolverAgainstSearch(t *testing.T) {
	solver(t)
	optimal := 0
	for seed := range uint64(30) {
		p := random(t, rand.New(rand.NewPCG(seed, 12)), 4+int(seed%6), 2+int(seed%2), sim.Config{Memory: seed%2 == 0})
		want, exact, err := Exact{}.Solve(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		p.Budget.Evaluations = 2000
		out, proof, err := CPSAT{}.Solve(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if proof.Impossible && !exact.Impossible {
			t.Fatalf("seed %d: called impossible, %v fits", seed, want.Score)
		}
		if !exact.Optimal {
			continue
		}
		if proof.Bound > want.Score.Value*(1+1e-9) {
			t.Errorf("seed %d: bound %g, optimum %g", seed, proof.Bound, want.Score.Value)
		}
		if proof.Optimal {
			optimal++
			if math.Abs(out.Score.Value/want.Score.Value-1) > 1e-6 || !strings.HasPrefix(out.Notes[0], "OPTIMAL") {
				t.Errorf("seed %d: %g called optimal (%q), the optimum is %g", seed, out.Score.Value, out.Notes, want.Score.Value)
			}
		}
		if s := p.Evaluator.Evaluate(plan.Decision{Device: out.Device, Priority: orProblems(out.Priority, p)}); s != out.Score {
			t.Errorf("seed %d: score %v, its plan's is %v", seed, out.Score, s)
		}
	}
	if optimal < 15 {
		t.Errorf("%d of 30 called optimal, want half", optimal)
	}
}

// TestWithoutSolver: where there is no library the branch and bound takes over, and
// a note says so; a path that holds none is an error.
func TestWithoutSolver(t *testing.T) {
	t.Setenv("PLACER_ORTOOLS", "")
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("HOME", t.TempDir())
	if _, err := cpsat.Open(""); err == nil {
		t.Skip("the system's own folders hold the library")
	}
	p := random(t, rand.New(rand.NewPCG(1, 13)), 6, 2, sim.Default())
	want, _, err := Exact{}.Solve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	out, proof, err := CPSAT{}.Solve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if out.Score != want.Score || !slices.Equal(out.Device, want.Device) || !proof.Optimal && !proof.Impossible {
		t.Errorf("%v, want what the branch and bound finds, %v", out, want)
	}
	if last := out.Notes[len(out.Notes)-1]; !strings.Contains(last, "libortools not found") || !strings.Contains(last, "own branch and bound") {
		t.Errorf("notes %q", out.Notes)
	}
	if _, _, err := (CPSAT{library: os.TempDir() + "/nothing.so"}).Solve(context.Background(), p); err == nil {
		t.Error("a library that is not there is no error")
	}
}
