package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"placer/plan"
)

// table is a simulator and a measurer by the first op's device.
type table struct {
	predicted, measured []plan.Score
	fails               map[uint8]bool
	mu                  sync.Mutex
	asked               []uint8
}

func (x *table) Evaluate(d plan.Decision) plan.Score { return x.predicted[d.Device[0]] }
func (x *table) Clone() plan.Evaluator               { return x }
func (x *table) OpSeconds(int) []float64             { return []float64{1} }
func (x *table) Parallel() int                       { return 3 }
func (x *table) Measure(_ context.Context, d plan.Decision) (plan.Score, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked = append(x.asked, d.Device[0])
	if x.fails[d.Device[0]] {
		return plan.Score{}, fmt.Errorf("placement %d is broken", d.Device[0])
	}
	return x.measured[d.Device[0]], nil
}

func measurementsOf(t interface{ Fatal(...any) }, dir string, x *table, stop func(error)) *Measurements {
	m, err := OpenCache(filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return NewMeasurements(context.Background(), x, m, Key{Graph: "g", Machine: "m"}, stop)
}

// TestRefine compares rounds with the definition, done naively: samples one at a
// time by rank.
func TestRefine(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		x := &table{}
		n := rapid.IntRange(1, 6).Draw(r, "plans")
		for range n {
			p := plan.Score{Value: float64(rapid.IntRange(1, 4).Draw(r, "predicted"))}
			if rapid.IntRange(0, 3).Draw(r, "fits") == 0 {
				p.Overflow = 7
			}
			m := plan.Score{Value: rapid.Float64Range(0.5, 8).Draw(r, "measured")}
			if rapid.IntRange(0, 4).Draw(r, "runs") == 0 {
				m.Overflow = 9
			}
			x.predicted, x.measured = append(x.predicted, p), append(x.measured, m)
		}
		j := measurementsOf(t, t.TempDir(), x, func(err error) { r.Fatal(err) })
		defer j.cache.Close()
		best := rapid.IntRange(1, 4).Draw(r, "best")
		s, err := NewPrescreen(x, j, best)
		if err != nil {
			r.Fatal(err)
		}
		ratio := 0.0
		for range 3 {
			samples := rapid.SliceOfN(rapid.Uint8Range(0, uint8(n-1)), 1, 8).Draw(r, "samples")
			scores := make([]plan.Score, len(samples))
			for k, d := range samples {
				scores[k] = s.Evaluate(plan.Decision{Device: []uint8{d}})
			}
			got := slices.Clone(scores)
			measured := s.Refine(got, func(k int) plan.Decision { return plan.Decision{Device: []uint8{samples[k]}} })

			// The naive way: best predicted first, each plan once, until enough.
			var chosen []uint8
			for len(chosen) < best {
				at := -1
				for k, d := range samples {
					if scores[k].Feasible() && !slices.Contains(chosen, d) && (at < 0 || scores[k].Value < scores[at].Value) {
						at = k
					}
				}
				if at < 0 {
					break
				}
				chosen = append(chosen, samples[at])
			}
			sum, feasible := 0.0, 0
			for _, d := range chosen {
				if x.measured[d].Feasible() {
					sum += math.Log(x.measured[d].Value / x.predicted[d].Value)
					feasible++
				}
			}
			if feasible > 0 && ratio == 0 {
				ratio = math.Exp(sum / float64(feasible))
			} else if feasible > 0 {
				ratio = math.Pow(ratio, 0.75) * math.Exp(0.25*sum/float64(feasible))
			}
			for k, d := range samples {
				want, exact := scores[k], false
				if want.Feasible() {
					if exact = slices.Contains(chosen, d); exact {
						want = x.measured[d]
					} else if ratio > 0 {
						want.Value *= ratio
					}
				}
				if measured[k] != exact || got[k].Overflow != want.Overflow || math.Abs(got[k].Value/want.Value-1) > 1e-12 {
					r.Fatalf("samples %v, best %d: sample %d has %+v (measured %v), want %+v (%v)", samples, best, k, got[k], measured[k], want, exact)
				}
			}
		}
		if c := j.Counts(); c.Measured != len(x.asked) || c.Failed != 0 {
			r.Fatalf("%d runs, counted %+v", len(x.asked), c)
		}
		slices.Sort(x.asked)
		if len(slices.Compact(slices.Clone(x.asked))) != len(x.asked) {
			r.Fatalf("measured twice: %v", x.asked)
		}
	})
}

// TestMeasurements: what the simulator refuses is not run, what runs out of memory or
// fails is infeasible, and three failures in a row stop the search.
func TestMeasurements(t *testing.T) {
	fits := plan.Score{Value: 1}
	x := &table{
		predicted: []plan.Score{{Value: 1, Overflow: 3}, fits, fits, fits, fits, fits, fits, fits},
		measured:  []plan.Score{{}, {Value: 2}, {Value: 1, Overflow: 5}, {}, {}, {}, {Value: 4}, {}},
		fails:     map[uint8]bool{3: true, 4: true, 5: true, 7: true},
	}
	var why error
	j := measurementsOf(t, t.TempDir(), x, func(err error) { why = errors.Join(why, err) })
	defer j.cache.Close()
	e := NewEvaluator(x, j)
	for k, want := range []plan.Score{{Value: 1, Overflow: 3}, {Value: 2}, {Value: 1, Overflow: 5}} {
		for range 2 { // the second time from the cache
			if got := e.Clone().Evaluate(plan.Decision{Device: []uint8{uint8(k)}}); got != want {
				t.Errorf("placement %d: %+v, want %+v", k, got, want)
			}
		}
	}
	if want := (counts{Measured: 2, Known: 2, OverMemory: 1}); j.Counts() != want {
		t.Errorf("counts %+v, want %+v", j.Counts(), want)
	}
	worst := x.predicted[0]
	for _, k := range []uint8{3, 3, 4, 6, 7} { // 3 twice is one failure; 6 ends the row
		got := e.Evaluate(plan.Decision{Device: []uint8{k}})
		if x.fails[k] && (got.Feasible() || !worst.Better(got)) {
			t.Errorf("placement %d, which fails: %+v", k, got)
		}
	}
	if why != nil {
		t.Fatalf("stopped after failures that are not in a row: %v", why)
	}
	if e.Evaluate(plan.Decision{Device: []uint8{5}}); why != nil {
		t.Fatalf("stopped after two: %v", why)
	}
	x.predicted, x.fails[8] = append(x.predicted, fits), true
	if e.Evaluate(plan.Decision{Device: []uint8{8}}); why == nil || !strings.Contains(why.Error(), "3 measurements in a row failed, the last: placement 8 is broken") {
		t.Errorf("after three failures in a row: %v", why)
	}
}

// TestMeasurementsInterrupted: an interruption is no failure of a placement.
func TestMeasurementsInterrupted(t *testing.T) {
	x := &table{predicted: []plan.Score{{Value: 1}}, fails: map[uint8]bool{0: true}}
	m := open(t, filepath.Join(t.TempDir(), "cache"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	j := NewMeasurements(ctx, x, m, Key{}, func(err error) { t.Error(err) })
	for range 4 {
		if _, err := j.Measure(plan.Decision{Device: []uint8{0}}, x.predicted[0]); err == nil {
			t.Error("no error")
		}
	}
	if j.Counts() != (counts{}) {
		t.Errorf("counts %+v", j.Counts())
	}
}

func TestSettings(t *testing.T) {
	s := DefaultSettings()
	s.Logical, s.Order = true, "ab"
	if back, err := Parse(s.String()); err != nil || back != s {
		t.Errorf("%v: %+v, want %+v", err, back, s)
	}
	for _, text := range []string{"", "{}", `{"mode":"eager","repeats":0}`, `{"mode":"slow","repeats":3}`, `{"mode":"eager","repeats":3,"x":1}`, s.String() + "{}"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
