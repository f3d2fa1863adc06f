package uncontended

import (
	"context"
	"math"

	"placer/baselines/budget"
	"placer/plan"
)

// Placer searches placements as if transfers never waited and devices ran first
// come first served; the problem's evaluator judges.
type Placer struct {
	// Start is a placement to start from, [N]; nil starts from contiguous blocks.
	Start []uint8
}

var _ plan.Placer = Placer{}

// Name returns "uncontended".
func (Placer) Name() string { return "uncontended" }

// Kind returns plan.Search.
func (Placer) Kind() plan.Kind { return plan.Search }

// stepsPerEvaluation is how many placements are clocked for an evaluation that is
// spent, on the best so far: clocking is so much cheaper than simulating.
const stepsPerEvaluation = 64

// Place anneals until the budget is spent or ctx ends.
func (u Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	track := budget.New(ctx, p, u.Name())
	track.Note("clocks %d placements an evaluation as if transfers never waited", stepsPerEvaluation)
	device := u.Start
	if device == nil {
		device = p.Units.Blocks(p.Evaluator.OpSeconds(0), p.Machine.NumDevices())
	}
	track.Try(device)
	clock := NewClock(p)
	c := Default()
	c.Seed = p.Seed
	c.Steps = stepsPerEvaluation * max(1, p.Budget.Evaluations)
	for round := uint64(0); !track.Done() && clock.d > 1; round++ {
		if p.Budget.Evaluations <= 0 {
			c.Steps = 100_000
		}
		c.Seed = p.Seed + round<<32
		tried := false
		device, _ = Search(ctx, p.Graph, clock, device, c, func(best []uint8) bool {
			track.Try(best)
			tried = true
			return !track.Done()
		})
		if !tried { // it was shorter than from one trial to the next
			track.Try(device)
		}
		if p.Budget.Evaluations > 0 && round > math.MaxInt16 {
			break
		}
	}
	return track.Outcome()
}
