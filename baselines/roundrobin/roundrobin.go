// Package roundrobin owns the baseline that deals units out to the devices in
// turn.
package roundrobin

import (
	"context"

	"placer/baselines/judge"
	"placer/graph/unit"
	"placer/plan"
)

// Placer gives unit u of its level to device u mod D.
type Placer struct {
	Level unit.Level
}

var _ plan.Placer = Placer{}

// Name returns "roundrobin".
func (Placer) Name() string { return "roundrobin" }

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// Place evaluates its one placement.
func (r Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, "roundrobin")
	device := make([]uint8, p.Graph.NumOps())
	for i, u := range p.Units.Levels[r.Level].Of {
		device[i] = uint8(int(u) % p.Machine.NumDevices())
	}
	j.Try(device)
	return j.Outcome()
}
