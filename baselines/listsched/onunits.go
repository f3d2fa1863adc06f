package listsched

import (
	"context"
	"fmt"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
)

// onOps schedules the ops of a problem with run, which returns false when ctx has
// ended.
func onOps(run func(*gapFilling, context.Context) bool) placing {
	return func(ctx context.Context, p *plan.Problem, name string) (*plan.Outcome, error) {
		track := budget.New(ctx, p, name)
		s := newGapFilling(p)
		if run(s, ctx) {
			track.Try(s.placement())
		}
		return track.Outcome()
	}
}

// onUnits schedules the units of every level with run, coarse before fine, and keeps
// the best placement.
func onUnits(run func(*gapFilling, context.Context) bool) placing {
	return func(ctx context.Context, p *plan.Problem, name string) (*plan.Outcome, error) {
		track := budget.New(ctx, p, name)
		device := make([]uint8, p.Graph.NumOps())
		for k, l := range []unit.Level{unit.Chain, unit.Segment, unit.Cell} {
			if k > 0 && track.Done() {
				break
			}
			s, c, err := newCoarsened(p, l)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if !run(s, ctx) {
				break
			}
			of := s.placement()
			for i, v := range c.Of {
				device[i] = of[v]
			}
			track.Try(device)
		}
		return track.Outcome()
	}
}

// newCoarsened prepares a schedule of p's units of level l: nodes of one unit and
// of its counterpart are bound together, and variables that nothing comes before are
// placed with their first reader.
func newCoarsened(p *plan.Problem, l unit.Level) (*gapFilling, *unit.Coarsened, error) {
	c, seconds, err := schedule.Coarsen(p, p.Units.Levels[l])
	if err != nil {
		return nil, nil, err
	}
	q := *p
	q.Graph, q.Evaluator, q.Units = c.Graph, &summed{seconds: seconds}, &unit.Hierarchy{}
	of, number := byPair(p.Units.Counterparts[l])(c)
	bound := &unit.Partition{Of: of, Ops: make([][]graph.OpID, number)}
	for v, k := range of {
		bound.Ops[k] = append(bound.Ops[k], graph.OpID(v))
	}
	q.Units.Levels[unit.Op] = bound
	s := newGapFilling(&q)
	if roles := p.Units.Roles[l]; roles != nil {
		s.source = sources(c, roles)
	}
	return s, c, nil
}

// summed gives the times of nodes; it evaluates nothing.
type summed struct {
	plan.Evaluator
	seconds [][]float64 // [D][V]
}

func (s *summed) OpSeconds(d int) []float64 { return s.seconds[d] }
