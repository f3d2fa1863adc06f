package rivals

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"placer/baselines/exact/cpsat"
	"placer/baselines/regal/brkga"
	"placer/baselines/regal/phase"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
)

// found is a schedule.
type found struct {
	device      []uint8 // [N]
	sequence    []int32 // items
	evaluations int     // 0: the method does not work by evaluations
}

// Method finds schedules. Solve may be called from many goroutines.
type Method struct {
	Name  string
	solve func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*found, error)
}

// errNotApplicable says that a method has no answer to an objective.
var errNotApplicable = errors.New("does not apply to this objective")

// placed returns the schedule that e judged last.
func placed(e *sched.Evaluator, evaluations int) *found {
	return &found{slices.Clone(e.Device()), slices.Clone(e.Sequence()), evaluations}
}

// genetic is the genetic algorithm with uniform distributions. factor multiplies the
// evaluations: BRKGA 10K where others have 5,000.
func genetic(name string, c brkga.Config, factor int) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*found, error) {
		e := sched.NewEvaluator(p, o)
		got := brkga.Run(ctx, e, brkga.Uniform{}, c, brkga.Budget{Evaluations: factor * evaluations}, r)
		e.Decode(got.Best)
		return placed(e, got.Evaluations), nil
	}}
}

// proposed is BRKGA with the proposals of q: REGAL, GAS, or with
// c.OneGeneration IDRS.
func proposed(name string, q propose.Proposer, c brkga.Config) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*found, error) {
		e := sched.NewEvaluator(p, o)
		got, err := propose.Search(ctx, e, q, c, evaluations, r)
		if err != nil {
			return nil, err
		}
		return placed(e, got.Evaluations), nil
	}}
}

// gpdfs is REGAL's baseline GP+DFS (Paliwal et al., ICLR 2020, A.10), what a compiler
// does without search: graph partitioning by Kernighan and Lin (1970) places the ops
// so that little is sent between devices, and a depth-first walk orders them. The
// devices get equal numbers of ops, whatever their times. That balances nothing of
// what the run time is made of, which is why the method is far behind in the paper and
// here.
func gpdfs() Method {
	return Method{"GP+DFS", func(_ context.Context, p *sched.Problem, o sched.Objective, _ int, r *rand.Rand) (*found, error) {
		e := sched.NewEvaluator(p, o)
		e.Place(bisect(p, r), depthFirst(p))
		return placed(e, 1), nil
	}}
}

// climbing is hill climbing.
func climbing(name string, c localSearch) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*found, error) {
		e := sched.NewEvaluator(p, o)
		got := c.solve(ctx, e, evaluations, r)
		if c.eager {
			e.PlaceEager(got.Device, got.Order)
		} else {
			e.Place(got.Device, got.Order)
		}
		return placed(e, got.Evaluations), nil
	}}
}

// phases is the specialised solver; it knows the run time alone.
func phases(name string, c phase.Config) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, _ int, r *rand.Rand) (*found, error) {
		if o != sched.RunTime {
			return nil, errNotApplicable
		}
		got, err := phase.Solve(ctx, p, c, r)
		if err != nil {
			return nil, err
		}
		return &found{got.Device, got.Sequence, 0}, nil
	}}
}

// solver is the constraint solver on the model of phases; it knows the run time
// alone.
func solver(l *cpsat.Library, params cpsat.Params) Method {
	return Method{"CP-SAT", func(ctx context.Context, p *sched.Problem, o sched.Objective, _ int, r *rand.Rand) (*found, error) {
		if o != sched.RunTime {
			return nil, errNotApplicable
		}
		got, err := solve(ctx, l, p, params, r)
		if err != nil {
			return nil, err
		}
		return &found{got.device, got.sequence, 0}, nil
	}}
}
