package cpsat_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"placer/baselines/exact/cpsat"
)

// library returns the solver or skips the test.
func library(t *testing.T) *cpsat.Library {
	t.Helper()
	l, err := cpsat.Open("")
	if errors.Is(err, cpsat.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestUnavailable(t *testing.T) {
	if _, err := cpsat.Open(filepath.Join(t.TempDir(), "libortools.so")); err == nil || !strings.Contains(err.Error(), "libortools.so") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if _, err := cpsat.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no libortools") {
		t.Errorf("error %v, want one that says what the folder lacks", err)
	}
	// A library without the solver.
	file := filepath.Join(t.TempDir(), "libortools.so")
	if err := os.WriteFile(file, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cpsat.Open(file); err == nil {
		t.Error("a file that is no library is opened")
	}
	if cpsat.ErrUnavailable.Error() == "" {
		t.Error("no message")
	}
}

// jobs of Fisher and Thompson's instance of six jobs on six machines (1963):
// pairs of machine and time. Its optimum is 55.
var ft06 = [6][12]int64{
	{2, 1, 0, 3, 1, 6, 3, 7, 5, 3, 4, 6},
	{1, 8, 2, 5, 4, 10, 5, 10, 0, 10, 3, 4},
	{2, 5, 3, 4, 5, 8, 0, 9, 1, 1, 4, 7},
	{1, 5, 0, 5, 2, 5, 3, 3, 4, 8, 5, 9},
	{2, 9, 1, 3, 4, 5, 5, 4, 0, 3, 3, 1},
	{1, 3, 3, 3, 5, 9, 0, 10, 4, 4, 2, 1},
}

func jobShop() (*cpsat.Model, cpsat.Var, [6][6]cpsat.Var) {
	var m cpsat.Model
	end := m.Int(0, 200)
	var onMachine [6][]cpsat.Interval
	var starts [6][6]cpsat.Var
	for j, job := range ft06 {
		at := cpsat.Const(0)
		for k := range 6 {
			starts[j][k] = m.Int(0, 200)
			start, size := cpsat.Of(starts[j][k]), job[2*k+1]
			m.AtMost(at, start)
			at = start.Add(size)
			onMachine[job[2*k]] = append(onMachine[job[2*k]], m.Interval(start, cpsat.Const(size), at))
		}
		m.AtMost(at, cpsat.Of(end))
	}
	for _, xs := range onMachine {
		m.NoOverlap(xs...)
	}
	m.Minimize(cpsat.Of(end))
	return &m, end, starts
}

func TestJobShop(t *testing.T) {
	l := library(t)
	var first []int64
	for range 2 {
		m, end, starts := jobShop()
		r, err := l.Solve(context.Background(), m, cpsat.Params{Workers: 1, Work: 60, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != cpsat.Optimal || r.Objective != 55 || r.Bound != 55 || r.Value(end) != 55 {
			t.Fatalf("%v: %g, bound %g, want OPTIMAL and 55", r.Status, r.Objective, r.Bound)
		}
		for j, job := range ft06 {
			for k := 1; k < 6; k++ {
				if r.Value(starts[j][k-1])+job[2*k-1] > r.Value(starts[j][k]) {
					t.Errorf("job %d: step %d starts before step %d ends", j, k, k-1)
				}
			}
		}
		if first == nil {
			first = r.Values
		} else if !slices.Equal(first, r.Values) {
			t.Error("the same model and seed gave another solution")
		}
	}
}

// TestKinds: one small model per kind of constraint, with its optimum.
func TestKinds(t *testing.T) {
	l := library(t)
	for _, c := range []struct {
		name  string
		build func(m *cpsat.Model) cpsat.Linear
		want  float64 // the least objective
	}{
		{"between", func(m *cpsat.Model) cpsat.Linear {
			x, y := m.Int(0, 9), m.Int(0, 9)
			m.Between(7, cpsat.Weighted([]cpsat.Var{x, y}, []int64{2, 1}).Add(3), 12)
			return cpsat.Of(x, y)
		}, 2},
		{"negation in a sum", func(m *cpsat.Model) cpsat.Linear {
			b := m.Bool()
			m.Between(3, cpsat.Of(b.Not()).Times(3), cpsat.NoUpper)
			return cpsat.Of(b).Times(10).Plus(cpsat.Of(b.Not()))
		}, 1},
		{"only if", func(m *cpsat.Model) cpsat.Linear {
			b, x := m.Bool(), m.Int(0, 9)
			m.Between(5, cpsat.Of(x), 9, b)
			m.Between(3, cpsat.Of(x), 9, b.Not())
			return cpsat.Of(x)
		}, 3},
		{"or", func(m *cpsat.Model) cpsat.Linear {
			v := m.Bools(3)
			m.Or([]cpsat.Var{v[0], v[1], v[2].Not()})
			m.Between(1, cpsat.Of(v[2]), 1)
			return cpsat.Weighted(v, []int64{5, 4, 1})
		}, 5},
		{"exactly one", func(m *cpsat.Model) cpsat.Linear {
			v := m.Bools(3)
			m.ExactlyOne(v...)
			return cpsat.Weighted(v, []int64{5, 4, 2})
		}, 2},
		{"max", func(m *cpsat.Model) cpsat.Linear {
			x, y := m.Int(2, 9), m.Int(0, 99)
			m.Max(cpsat.Of(y), cpsat.Of(x).Times(3), cpsat.Const(4))
			return cpsat.Of(y)
		}, 6},
		{"optional interval", func(m *cpsat.Model) cpsat.Linear {
			// Two of three jobs of 5 in 0..10 side by side with one fixed at 2..4.
			b, end := m.Bool(), m.Int(0, 99)
			fixed := m.Interval(cpsat.Const(2), cpsat.Const(2), cpsat.Const(4))
			s := m.Int(0, 50)
			x := m.Interval(cpsat.Of(s), cpsat.Const(5), cpsat.Of(s).Add(5), b)
			m.NoOverlap(fixed, x)
			m.AtMost(cpsat.Of(s).Add(5), cpsat.Of(end), b)
			return cpsat.Of(b.Not()).Times(20).Plus(cpsat.Of(end))
		}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m cpsat.Model
			m.Minimize(c.build(&m))
			r, err := l.Solve(context.Background(), &m, cpsat.DefaultParams())
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != cpsat.Optimal || r.Objective != c.want || r.Bound != c.want {
				t.Errorf("%v: %g, bound %g, want %g", r.Status, r.Objective, r.Bound, c.want)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	l := library(t)
	var m cpsat.Model
	x := m.Int(0, 3)
	m.Between(5, cpsat.Of(x), 9)
	if r, err := l.Solve(context.Background(), &m, cpsat.DefaultParams()); err != nil || r.Status != cpsat.Infeasible {
		t.Errorf("%+v, %v, want INFEASIBLE", r, err)
	}
	m = cpsat.Model{}
	m.Or([]cpsat.Var{7})
	if _, err := l.Solve(context.Background(), &m, cpsat.DefaultParams()); err == nil || !strings.Contains(err.Error(), "invalid") {
		t.Errorf("error %v of a model that names a variable it lacks", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := l.Solve(ctx, &m, cpsat.DefaultParams()); err != nil || r.Status != cpsat.Unknown {
		t.Errorf("%+v, %v under an ended context, want UNKNOWN", r, err)
	}
	if _, err := l.Solve(context.Background(), &m, cpsat.Params{}); err == nil {
		t.Error("no workers are no error")
	}
}

// TestStop ends the context while the solver runs on a model that it cannot
// finish: pigeons and holes, said so that it sees no pigeons.
func TestStop(t *testing.T) {
	l := library(t)
	var m cpsat.Model
	var rows [][]cpsat.Var
	const holes = 40
	for range holes + 1 {
		row := m.Bools(holes)
		m.Or(row)
		rows = append(rows, row)
	}
	for h := range holes {
		for a := range rows {
			for b := range a {
				m.Or([]cpsat.Var{rows[a][h].Not(), rows[b][h].Not()})
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	r, err := l.Solve(ctx, &m, cpsat.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if r.Status == cpsat.Unknown && ctx.Err() == nil {
		t.Error("it gave up before the context ended")
	}
}

// Two jobs on one machine, and the solver run on them where it is installed.
func ExampleLibrary_Solve() {
	m, end := twoJobs()
	l, err := cpsat.Open("")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := l.Solve(context.Background(), m, cpsat.DefaultParams())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Status, r.Value(end)) // OPTIMAL 7
}

func Example() {
	m, _ := twoJobs()
	wire, err := m.Marshal()
	fmt.Println(m.NumVars(), "variables,", m.NumConstraints(), "constraints,", len(wire), "bytes", err)
	// Output:
	// 3 variables, 7 constraints, 191 bytes <nil>
}

func twoJobs() (*cpsat.Model, cpsat.Var) {
	var m cpsat.Model
	end := m.Int(0, 100)
	var machine []cpsat.Interval
	for _, size := range []int64{3, 4} {
		start := m.Int(0, 100)
		finish := cpsat.Of(start).Add(size)
		machine = append(machine, m.Interval(cpsat.Of(start), cpsat.Const(size), finish))
		m.AtMost(finish, cpsat.Of(end))
	}
	m.NoOverlap(machine...)
	m.Minimize(cpsat.Of(end))
	return &m, end
}
