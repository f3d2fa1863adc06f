// Package random owns the baselines that draw placements uniformly: one draw,
// and the best of as many as the budget allows.
package random

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/judge"
	"placer/graph/unit"
	"placer/plan"
)

// Placer draws a device for every unit of its level, independently.
type Placer struct {
	Level unit.Level
	// Samples is the number of draws of which the best is kept; 0 draws until the
	// budget ends.
	Samples int
}

var _ plan.Placer = Placer{}

// Name returns "random" for one draw, otherwise "random-best".
func (r Placer) Name() string {
	if r.Samples == 1 {
		return "random"
	}
	return "random-best"
}

// Kind returns plan.Baseline for one draw, otherwise plan.Search.
func (r Placer) Kind() plan.Kind {
	if r.Samples == 1 {
		return plan.Baseline
	}
	return plan.Search
}

// Place draws and evaluates. It needs a bound: samples, or a budget.
func (r Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, r.Name())
	if r.Samples <= 0 && j.Unbounded() {
		return nil, fmt.Errorf("%s: neither samples nor a budget bound it", r.Name())
	}
	rng := rand.New(rand.NewPCG(p.Seed, 0x72616e646f6d)) // "random"
	units := p.Units.Levels[r.Level]
	of := make([]uint8, units.NumUnits())
	device := make([]uint8, p.Graph.NumOps())
	for k := 0; k == 0 || (r.Samples <= 0 || k < r.Samples) && !j.Done(); k++ {
		for u := range of {
			of[u] = uint8(rng.IntN(p.Machine.NumDevices()))
		}
		for i, u := range units.Of {
			device[i] = of[u]
		}
		j.Try(device)
	}
	return j.Outcome()
}
