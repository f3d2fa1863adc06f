package listsched

import (
	"context"
	"fmt"

	"placer/baselines/judge"
	"placer/graph/unit"
	"placer/plan"
)

// Placer is list scheduling on units. It tries every rule in a fixed order and
// keeps the best placement.
type Placer struct{}

var _ plan.Placer = Placer{}

// Name returns "listsched".
func (Placer) Name() string { return "listsched" }

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// rule is one way to choose a device.
type rule struct {
	level unit.Level
	// balance weighs the work that a device would have, as a share of the mean,
	// against the time at which the unit's first node would end.
	balance float64
	// cling weighs the time that the node's operands take to get to the device,
	// beside what they delay it: links are busy with what follows, too.
	cling float64
}

// rules are coarse before fine, so that a short budget sees the safer ones.
func rules() []rule {
	var rs []rule
	for _, l := range []unit.Level{unit.Chain, unit.Segment, unit.Cell} {
		for _, b := range []float64{1, 0.3, 0} {
			for _, c := range []float64{0, 1, 4} {
				rs = append(rs, rule{l, b, c})
			}
		}
	}
	return rs
}

// Place evaluates one placement per rule.
func (Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, "listsched")
	device := make([]uint8, p.Graph.NumOps())
	var s *scheduler
	for k, r := range rules() {
		if k > 0 && j.Done() {
			break
		}
		if s == nil || s.level != r.level {
			var err error
			if s, err = newScheduler(p, r.level); err != nil {
				return nil, fmt.Errorf("listsched: %w", err)
			}
		}
		s.run(r)
		for i, u := range s.units.Of {
			device[i] = uint8(max(s.device[u], 0))
		}
		j.Try(device)
	}
	return j.Outcome()
}
