package verdict

import (
	"cmp"
	"context"
	"slices"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// repairer moves units off devices that are too full, those that hold most first, to
// where the plan lacks least, from chains down to single ops, until it fits, under the
// plan's own priorities and fusion.
type repairer struct {
	p    *problem.Problem
	from plan.Decision
}

func (repairer) Name() string    { return repair }
func (repairer) Kind() plan.Kind { return plan.Search }

// repair names the method.
const repair = "repair"

// Place moves units until the plan fits, nothing helps, or the budget is spent.
func (r repairer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	start := budget.Now(p)
	out := &plan.Outcome{Decision: r.from.Clone()}
	evaluate := func(d plan.Decision) plan.Score {
		out.Evaluations++
		return p.Evaluator.Evaluate(d)
	}
	done := func() bool {
		return out.Score.Feasible() || ctx.Err() != nil || budget.Spent(p, start, float64(out.Evaluations)) >= 1
	}
	out.Score = evaluate(out.Decision)
	trial := out.Clone()
	for level := unit.NumLevels; level > 0 && !done(); {
		level--
		moved := false
		peak := r.p.Peak(out.Decision)
		for _, u := range r.heavy(p.Units.Levels[level], out.Device, peak) {
			if done() {
				break
			}
			best := -1
			for d := range p.Machine.Devices {
				if int(out.Device[u.ops[0]]) == d || peak[d] > p.Machine.Devices[d].Memory {
					continue
				}
				copy(trial.Device, out.Device)
				for _, i := range u.ops {
					trial.Device[i] = uint8(d)
				}
				if s := evaluate(trial); s.Better(out.Score) {
					out.Score, best = s, d
				}
			}
			if best < 0 {
				continue
			}
			for _, i := range u.ops {
				out.Device[i] = uint8(best)
			}
			moved = true
			peak = r.p.Peak(out.Decision)
		}
		if moved {
			level++ // what did not help before may now
		}
	}
	return out, nil
}

// heavyUnit is a unit with the bytes that it holds and makes.
type heavyUnit struct {
	ops   []graph.OpID
	bytes units.Bytes
}

// heavy returns the units of a level that are on devices which are too full, heaviest
// first.
func (r repairer) heavy(l *unit.Partition, device []uint8, peak []units.Bytes) (all []heavyUnit) {
	g := r.p.Graph
	for _, ops := range l.Ops {
		if d := device[ops[0]]; peak[d] <= r.p.Machine.Devices[d].Memory {
			continue
		}
		u := heavyUnit{ops: ops}
		for _, i := range ops {
			u.bytes += g.Op(i).Resident
			first, end := g.Outputs(i)
			for t := first; t < end; t++ {
				u.bytes += g.Tensor(t).Bytes
			}
		}
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(a, b heavyUnit) int { return cmp.Compare(b.bytes, a.bytes) })
	return all
}
