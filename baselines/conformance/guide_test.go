package conformance_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"placer/baselines/budget"
	"placer/baselines/conformance"
	"placer/graph/unit"
	"placer/internal/doctest"
	"placer/plan"
)

// Placer decides on the units of Level.
type Placer struct {
	Level unit.Level
}

var _ plan.Placer = Placer{}

// Name returns "lpt".
func (Placer) Name() string { return "lpt" }

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// Place evaluates its one placement.
func (l Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	devices := p.Machine.Accelerators()
	seconds := p.Evaluator.OpSeconds(int(devices[0]))
	units := p.Units.Levels[l.Level]
	work := make([]float64, units.NumUnits()) // [U] of each unit
	for op, u := range units.Of {
		work[u] += seconds[op]
	}
	order := make([]int, len(work))
	for u := range order {
		order[u] = u
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(work[b], work[a]) })

	load := make([]float64, len(devices)) // [D] so far
	on := make([]uint8, len(work))
	for _, u := range order {
		least := slices.Index(load, slices.Min(load))
		load[least] += work[u]
		on[u] = devices[least]
	}
	device := make([]uint8, len(units.Of))
	for op, u := range units.Of {
		device[op] = on[u]
	}
	return budget.One(ctx, p, l.Name(), device)
}

// TestGuide: the method that docs/adding-a-baseline.md adds passes the suite.
func TestGuide(t *testing.T) {
	doctest.Shows(t, "../../docs/adding-a-baseline.md", "guide_test.go", "// Placer decides on")
	conformance.Run(t, conformance.Method{Name: "lpt", New: func() (plan.Placer, error) { return Placer{Level: unit.Segment}, nil }})
}
