package robust

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"placer/internal/parallel"
	"placer/plan"
	"placer/units"
)

// Finals returns which of decisions has the least quantile on c.Machines machines that are drawn
// independently, and on how many of these it ran: a search chooses among very many plans by few
// machines, so that its best is partly one of chance. After a sixteenth, an eighth, a quarter and
// a half of them the better half of the decisions goes on (successive halving: Karnin, Koren and
// Somekh, 2013), until one is left. Each worker, of which there is at least one, holds one machine
// at a time; the answer does not depend on their number. Where ctx ends, the machines so far
// decide. Decisions that take more memory than there is on any machine come last. A decision alone
// is the best without a machine.
func Finals(ctx context.Context, x Model, c Config, decisions []plan.Decision, workers int) (best, machines int, err error) {
	if err := c.Validate(); err != nil {
		return 0, 0, err
	}
	if len(decisions) == 1 {
		return 0, 0, nil
	}
	left := make([]finalist, len(decisions))
	for k, d := range decisions {
		left[k] = finalist{of: k, decision: d}
	}
	for _, until := range []int{c.Machines / 16, c.Machines / 8, c.Machines / 4, c.Machines / 2, c.Machines} {
		if until <= machines || len(left) == 1 {
			continue
		}
		ran, err := x.round(ctx, c, machines, until, left, workers)
		if err != nil {
			return 0, machines, err
		}
		if machines += ran; machines < until {
			break
		}
		if until < c.Machines {
			left = sorted(left, c.Quantile)
			left = left[:(len(left)+1)/2]
		}
	}
	if machines == 0 {
		return 0, 0, nil
	}
	return sorted(left, c.Quantile)[0].of, machines, nil
}

// round runs all on the machines from the from-th to before the until-th, and returns how many
// of them: fewer where ctx ends, the first ones.
func (x *Model) round(ctx context.Context, c Config, from, until int, all []finalist, workers int) (ran int, err error) {
	scores, errs := make([][]plan.Score, until-from), make([]error, until-from)
	var next atomic.Int64
	var wait parallel.Group
	for range min(max(1, workers), until-from) {
		wait.Go(func() {
			for ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= len(scores) {
					return
				}
				scores[k], errs[k] = x.scoresOn(independent(c, from+k, dimensions(x.Machine)), all)
			}
		})
	}
	wait.Wait()
	for k, of := range scores { // machines are taken in order, so that those that ran are the first
		if errs[k] != nil {
			return ran, errs[k]
		}
		if of == nil {
			break
		}
		for i := range all {
			all[i].add(of[i])
		}
		ran++
	}
	return ran, nil
}

// scoresOn returns the score of each of all on the machine that is off by factors.
func (x *Model) scoresOn(factor []float64, all []finalist) ([]plan.Score, error) {
	s, err := x.off(factor)
	if err != nil {
		return nil, err
	}
	scores := make([]plan.Score, len(all))
	for k := range all {
		scores[k] = s.Evaluate(all[k].decision)
	}
	return scores, nil
}

// finalist is a decision with its steps so far.
type finalist struct {
	of       int
	decision plan.Decision
	steps    []float64
	overflow units.Bytes
	quantile float64
}

func (f *finalist) add(x plan.Score) {
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
