package robust

import (
	"cmp"
	"context"
	"slices"

	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Finals returns which of decisions has the least quantile on c.Machines machines that are drawn
// independently, and on how many of these it ran: a search chooses among very many plans by few
// machines, so that its best is partly one of chance. Machines are made one at a time. After a
// sixteenth, an eighth, a quarter and a half of them the better half of the decisions goes on
// (successive halving: Karnin, Koren and Somekh, 2013), until one is left. Where ctx ends, the machines so far decide. Decisions that take
// more memory than there is on any machine come last.
func Finals(ctx context.Context, x Model, c Config, decisions []plan.Decision) (best, machines int, err error) {
	if err := c.Validate(); err != nil {
		return 0, 0, err
	}
	left := make([]finalist, len(decisions))
	for k, d := range decisions {
		left[k] = finalist{of: k, decision: d}
	}
	for machines < c.Machines && ctx.Err() == nil && (len(left) > 1 || machines == 0) {
		s, err := x.off(independent(c, machines, dimensions(x.Machine)))
		if err != nil {
			return 0, machines, err
		}
		for k := range left {
			left[k].run(s)
		}
		switch machines++; machines {
		case c.Machines / 16, c.Machines / 8, c.Machines / 4, c.Machines / 2:
			left = sorted(left, c.Quantile)
			left = left[:(len(left)+1)/2]
		}
	}
	if machines == 0 {
		return 0, 0, nil
	}
	return sorted(left, c.Quantile)[0].of, machines, nil
}

// finalist is a decision with its steps so far.
type finalist struct {
	of       int
	decision plan.Decision
	steps    []float64
	overflow units.Bytes
	quantile float64
}

func (f *finalist) run(s *sim.Simulator) {
	x := s.Evaluate(f.decision)
	f.steps = append(f.steps, x.Value)
	f.overflow = max(f.overflow, x.Overflow)
}

// sorted orders finalists, the best first and the first of equals before the others.
func sorted(all []finalist, q float64) []finalist {
	for k := range all {
		all[k].quantile = fitted(all[k].steps, q)
	}
	slices.SortStableFunc(all, func(a, b finalist) int {
		return cmp.Or(cmp.Compare(a.overflow, b.overflow), cmp.Compare(a.quantile, b.quantile))
	})
	return all
}
