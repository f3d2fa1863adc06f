package report

import (
	"slices"
	"strings"

	"placer/placer/strategies"
	"placer/plan"
)

// Divide adds the ways to divide the batch of so many samples among the devices.
func (s *Search) Divide(rows []strategies.Row, batch int64) {
	s.Batch, s.DividedBest = batch, ""
	for k := range rows {
		s.Divided = append(s.Divided, describeStrategy(&rows[k], batch))
	}
	if best := strategies.Best(rows); best != nil && best.Overflow == 0 {
		s.DividedBest = best.Name
	}
}

// writeDivided writes the ways to divide the batch, and what the best of them is worth beside the
// best placement.
func (s *Search) writeDivided(pg *page) {
	if len(s.Divided) == 0 {
		return
	}
	k := slices.IndexFunc(s.Divided, func(r strategyRow) bool { return r.Name == s.DividedBest })
	switch {
	case !slices.ContainsFunc(s.Divided, func(r strategyRow) bool { return r.Tried > 0 }):
		pg.prosef("none of the strategies below can divide the batch of %d\n", s.Batch)
	case k < 0:
		pg.prosef("no strategy that was tried for the batch of %d fits\n", s.Batch)
	case !s.Best.Feasible:
		pg.prosef("with the batch divided among the devices the step fits: %s, step %s (%s)\n", s.DividedBest, seconds(s.Divided[k].StepTime), s.Divided[k].Strategy)
	case s.Divided[k].StepTime < s.Best.StepTime:
		pg.prosef("a strategy is faster than this plan: %s (%s), step %s, %s shorter\n", s.DividedBest, s.Divided[k].Strategy, seconds(s.Divided[k].StepTime), percentOf(1-s.Divided[k].StepTime/s.Best.StepTime))
	default:
		pg.prosef("%s shorter than the best strategy, %s (step %s)\n", percentOf(1-s.Best.StepTime/s.Divided[k].StepTime), s.DividedBest, seconds(s.Divided[k].StepTime))
	}
	kernels := "every op a kernel"
	if strings.Contains(s.Tasks, plan.Fuse.String()) {
		kernels = "ops fused by rules"
	}
	pg.prosef("\nthe batch of %d divided among the devices, %s ('placer strategies' has more)\n", s.Batch, kernels)
	writeWays(pg, s.Divided, s.DividedBest)
}
