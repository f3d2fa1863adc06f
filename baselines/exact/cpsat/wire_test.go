package cpsat

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFieldNumbers: the same model, built here and with the solver's own classes
// (testdata/make.py), is the same bytes.
func TestFieldNumbers(t *testing.T) {
	var m Model
	a, b, c, d, e := m.Bool(), m.Bool(), m.Int(-5, 100), m.Int(0, 1000), m.Int(3, 3)
	m.AtMost(Linear{terms: []term{{d, 3}, {c, 2}}, offset: 4}, Const(17), a, b.Not())
	m.Or([]Var{a, b.Not()})
	m.ExactlyOne(a.Not(), b)
	m.Max(Of(d), Of(c).Add(1), Const(7))
	x := m.Interval(Of(c), Of(e), Of(d), a)
	m.NoOverlap(x)
	m.Minimize(Of(a.Not()).Times(2).Plus(Of(d))) // 2 (1 - a) + d
	m.Hint(d, 500)
	m.Hint(b.Not(), 1)
	m.Hint(d, 3)
	got, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if want := read(t, "model.pb"); !bytes.Equal(got, want) {
		t.Errorf("model\n%x, want\n%x", got, want)
	}
	if got, want := (Params{Seconds: 2.5, Work: 0.5, Seed: 7, Workers: 3}).marshal(), read(t, "params.pb"); !sameFields(got, want) {
		t.Errorf("parameters\n%x, want\n%x", got, want)
	}
	r, err := unmarshal(read(t, "response.pb"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != Feasible || r.Objective != 12.5 || r.Bound != -3 || !slices.Equal(r.Values, []int64{1, -7, 1 << 40}) {
		t.Errorf("response %+v", r)
	}
	if r.Value(Var(0)) != 1 || r.Value(Var(0).Not()) != 0 || !r.True(Var(0)) {
		t.Error("a literal and its negation")
	}
}

// sameFields compares messages whose fields may come in any order.
func sameFields(a, b []byte) bool {
	x, y := slices.Clone(a), slices.Clone(b)
	slices.Sort(x)
	slices.Sort(y)
	return bytes.Equal(x, y)
}

func TestBrokenResponses(t *testing.T) {
	whole := read(t, "response.pb")
	for k := range whole {
		unmarshal(whole[:k]) // must not panic
	}
	rapid.Check(t, func(t *rapid.T) {
		unmarshal(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	})
	if _, err := unmarshal(whole[:len(whole)-1]); err == nil {
		t.Error("a cut response is read without an error")
	}
}

// TestLinear compares sums with their value under random assignments.
func TestLinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := []int64{rapid.Int64Range(0, 1).Draw(t, "a"), rapid.Int64Range(0, 1).Draw(t, "b")}
		value := func(e Linear) int64 {
			sum := e.offset
			for _, x := range e.terms {
				v := x.v
				if v < 0 {
					sum += x.factor * (1 - values[v.Not()])
				} else {
					sum += x.factor * values[v]
				}
			}
			return sum
		}
		draw := func(name string) Linear {
			var e Linear
			for range rapid.IntRange(0, 4).Draw(t, name) {
				v := Var(rapid.Int32Range(-2, 1).Draw(t, "var"))
				e = e.Plus(Of(v).Times(rapid.Int64Range(-3, 3).Draw(t, "factor")))
			}
			return e.Add(rapid.Int64Range(-9, 9).Draw(t, "offset"))
		}
		e, f := draw("terms of e"), draw("terms of f")
		if value(e.Plus(f)) != value(e)+value(f) || value(e.Minus(f)) != value(e)-value(f) || value(e.merged()) != value(e) {
			t.Fatalf("e %+v, f %+v under %v", e, f, values)
		}
		for k, x := range e.merged().terms {
			if x.v < 0 || x.factor == 0 || k > 0 && e.merged().terms[k-1].v >= x.v {
				t.Fatalf("merged %+v", e.merged())
			}
		}
	})
}

func TestFaultyModels(t *testing.T) {
	var m Model
	m.Int(2, 1)
	if _, err := m.Marshal(); err == nil || err.Error() != "cpsat: variable 0 has the empty domain 2..1" {
		t.Errorf("error %v", err)
	}
	m = Model{}
	a, b := m.Bool(), m.Bool()
	m.Interval(Of(a, b), Const(1), Const(3))
	if m.Err() == nil {
		t.Error("an interval that starts at a sum of two variables is built without an error")
	}
}
