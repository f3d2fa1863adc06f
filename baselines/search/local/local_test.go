package local

import (
	"context"
	"testing"

	"placer/baselines/conformance"
	"placer/graph/unit"
	"placer/plan"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Method{Name: "local", New: func() (plan.Placer, error) { return Placer{}, nil }})
}

// Where the first descent ends, no single move of a unit helps.
func TestDescendEndsInALocalOptimum(t *testing.T) {
	for _, c := range conformance.Tiny() {
		t.Run(c.Name, func(t *testing.T) {
			p, err := c.Problem()
			if err != nil {
				t.Fatal(err)
			}
			var device []uint8
			p.Budget.Evaluations = 10000
			stop, cancel := context.WithCancel(t.Context())
			defer cancel()
			idle := 0
			best := plan.Score{}
			counted := &watcher{Evaluator: p.Evaluator, seen: func(s plan.Score) {
				if best == (plan.Score{}) || s.Better(best) {
					best, idle = s, 0
				} else if idle++; idle > 4*p.Graph.NumOps()*p.Machine.NumDevices()*int(unit.NumLevels) {
					cancel()
				}
			}}
			inner := p.Evaluator
			p.Evaluator = counted
			out, err := Placer{}.Place(stop, p)
			if err != nil {
				t.Fatal(err)
			}
			device = out.Device
			for _, ops := range p.Units.Levels[unit.Cell].Ops {
				old := device[ops[0]]
				for d := range p.Machine.NumDevices() {
					for _, i := range ops {
						device[i] = uint8(d)
					}
					if s := inner.Evaluate(plan.Decision{Device: device, Priority: p.Priority}); s.Better(out.Score) {
						t.Errorf("moving the unit of op %d to device %d gives %v, better than %v", ops[0], d, s, out.Score)
					}
				}
				for _, i := range ops {
					device[i] = old
				}
			}
		})
	}
}

// watcher shows every score.
type watcher struct {
	plan.Evaluator
	seen func(plan.Score)
}

func (w *watcher) Evaluate(d plan.Decision) plan.Score {
	s := w.Evaluator.Evaluate(d)
	w.seen(s)
	return s
}
