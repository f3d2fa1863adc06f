package sequential

import (
	"context"

	"placer/plan"
)

// pace says how many samples a round has.
type pace struct {
	rounds
	clock   func() float64
	begin   float64
	spent   float64 // seconds before begin
	budget  plan.Budget
	from    int     // samples before the first step of this run
	started float64 // seconds from begin to the first step
}

// seconds returns those of the fine-tuning so far, as far as there is a clock.
func (x *pace) seconds() float64 {
	if x.clock == nil {
		return x.spent
	}
	return x.spent + x.clock() - x.begin
}

// over reports whether the budget in seconds is spent.
func (x *pace) over() bool {
	return x.budget.Seconds > 0 && x.clock != nil && x.seconds() >= x.budget.Seconds
}

// untilSpent is a context that ends when the budget in seconds is spent, too, by the clock
// of the problem and not by a timer. Whoever works under it asks Err: Done is ctx's alone.
type untilSpent struct {
	context.Context
	pace *pace
}

// Err is as context.Context says.
func (c untilSpent) Err() error {
	if c.pace.over() {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// samples returns those of the step that s comes to.
func (x *pace) samples(s *TuneState) int {
	k, left := x.evaluated(s.Step), 0 // left are the samples planned from here on
	for step := s.Step; step < x.Steps; step++ {
		left += x.evaluated(step)
	}
	if n := x.budget.Evaluations; n > 0 {
		// Few are better spent on few steps than on steps of one or two.
		k = min(k, n-s.Evaluations, max(x.fewest, (n-s.Evaluations)*k/left))
	}
	if total := x.budget.Seconds; total > 0 && x.clock != nil {
		if x.over() {
			return 0
		}
		now := x.clock() - x.begin
		if done := s.Evaluations - x.from; done > 0 && now > x.started {
			// Finer levels cost more than what was measured at coarse ones; the
			// division is made anew at each step.
			each := (now - x.started) / float64(done)
			k = min(k, max(x.fewest, int((total-x.spent-now)*float64(k)/float64(left)/each)))
		} else {
			x.started = now
			k = min(k, x.firstSamples)
		}
	}
	return k
}
