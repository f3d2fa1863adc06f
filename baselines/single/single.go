// Package single owns the baseline that runs the whole graph on one device.
package single

import (
	"context"

	"placer/baselines/judge"
	"placer/plan"
)

// Placer tries every device that differs from those before it and keeps the
// best.
type Placer struct{}

var _ plan.Placer = Placer{}

// Name returns "single".
func (Placer) Name() string { return "single" }

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// Place evaluates one placement per model of device.
func (Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, "single")
	device := make([]uint8, p.Graph.NumOps())
	for d := range p.Machine.NumDevices() {
		if d > 0 && (j.Done() || seen(p, d)) {
			continue
		}
		for i := range device {
			device[i] = uint8(d)
		}
		j.Try(device)
	}
	return j.Outcome()
}

// seen reports whether a device before d has the same figures: it would
// give the same step.
func seen(p *plan.Problem, d int) bool {
	for _, v := range p.Machine.Devices[:d] {
		if v.SameFigures(&p.Machine.Devices[d]) {
			return true
		}
	}
	return false
}
