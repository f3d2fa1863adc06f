package cli

import (
	"context"

	"placer/placer/strategies"
	"placer/placer/verdict"
	"placer/plan"
)

// A search of at least leastBeside seconds gives besideShare of them at most to
// strategies, which divide the batch among the devices.
const (
	leastBeside = 30
	besideShare = 0.05
)

// divisible returns the graph at any batch, or nil where its batch is not known or cannot
// be divided.
func (c *console) divisible(f *graphFlags, l loaded, batch float64) strategies.Family {
	if batch < 2 || l.Times != nil || l.Seconds != nil || f.Graph == "-" {
		return nil
	}
	family, _, err := c.family(f, int64(batch), nil)
	if err != nil {
		return nil
	}
	return family
}

// besides reports whether the search has rows of strategies: where --strategies says so,
// else where its budget is a time that leaves some for them.
func (s *runSettings) besides() bool {
	if s.Strategies != nil {
		return *s.Strategies
	}
	return s.Budget.Seconds >= leastBeside
}

// beside simulates what people run instead of one placement of the whole step, at its batch, and
// returns that and the batch. It notes why there is nothing where it was asked for.
func (c *console) beside(ctx context.Context, s *searchRun) ([]strategies.Row, int64) {
	k := &s.config
	if !k.besides() {
		return nil, 0
	}
	none := func(why string) ([]strategies.Row, int64) {
		if k.Strategies != nil {
			c.note("--strategies: %s", why)
		}
		return nil, 0
	}
	if k.Objective.Normal() != plan.Step || k.Robust != "" || k.measures() || k.Contention != "" {
		return none("they are compared by the predicted step alone")
	}
	if len(s.task.Machine.Ranks()) < 2 {
		return none("there is one device")
	}
	batch, err := k.graphFlags.samples(s.loaded)
	if err != nil {
		return none(err.Error())
	}
	family := c.divisible(&k.graphFlags, s.loaded, float64(batch))
	if family == nil {
		return none("the graph's batch is not known to be open, or is below 2")
	}
	var room *strategies.Room
	if left := k.Budget.Seconds - s.before; k.Budget.Seconds > 0 {
		room = &strategies.Room{Clock: c.clock, End: c.clock() + besideShare*left}
	}
	m, err := verdict.InOrder(s.loaded.Source, s.task.Machine)
	if err != nil {
		return none(err.Error())
	}
	x, err := strategies.NewComparison(s.loaded.Source, family, m, strategies.Config{Batch: batch, Clock: c.clock, Eager: !s.task.Decides(plan.Fuse), Room: room})
	if err != nil {
		return none(err.Error())
	}
	return x.Beside(ctx), batch
}
