package rivals

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"placer/baselines/cpsat"
	"placer/baselines/regal/brkga"
	"placer/baselines/regal/cp"
	"placer/baselines/regal/gpdfs"
	"placer/baselines/regal/hill"
	"placer/baselines/regal/phase"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
)

// Found is a schedule.
type Found struct {
	Device      []uint8 // [N]
	Sequence    []int32 // items
	Evaluations int     // 0: the method does not work by evaluations
}

// Method finds schedules. Solve may be called from many goroutines.
type Method struct {
	Name  string
	Solve func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*Found, error)
}

// ErrNotApplicable says that a method has no answer to an objective.
var ErrNotApplicable = errors.New("does not apply to this objective")

// placed returns the schedule that e judged last.
func placed(e *sched.Evaluator, evaluations int) *Found {
	return &Found{slices.Clone(e.Device()), slices.Clone(e.Sequence()), evaluations}
}

// BRKGA is the genetic algorithm with uniform distributions. factor multiplies the
// evaluations: BRKGA 10K where others have 5,000.
func BRKGA(name string, c brkga.Config, factor int) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*Found, error) {
		e := sched.NewEvaluator(p, o)
		got := brkga.Run(ctx, e, brkga.Uniform{}, c, brkga.Budget{Evaluations: factor * evaluations}, r)
		e.Decode(got.Best)
		return placed(e, got.Evaluations), nil
	}}
}

// Proposed is BRKGA with the proposals of q: REGAL, GAS, or with
// c.OneGeneration IDRS.
func Proposed(name string, q propose.Proposer, c brkga.Config) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*Found, error) {
		e := sched.NewEvaluator(p, o)
		got, err := propose.Search(ctx, e, q, c, evaluations, r)
		if err != nil {
			return nil, err
		}
		return placed(e, got.Evaluations), nil
	}}
}

// GPDFS is graph partitioning with depth-first order.
func GPDFS() Method {
	return Method{"GP+DFS", func(_ context.Context, p *sched.Problem, o sched.Objective, _ int, r *rand.Rand) (*Found, error) {
		e := sched.NewEvaluator(p, o)
		gpdfs.Solve(e, r)
		return placed(e, 1), nil
	}}
}

// LocalSearch is hill climbing.
func LocalSearch(name string, c hill.Config) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, evaluations int, r *rand.Rand) (*Found, error) {
		e := sched.NewEvaluator(p, o)
		got := hill.Solve(ctx, e, c, evaluations, r)
		if c.Eager {
			e.PlaceEager(got.Device, got.Order)
		} else {
			e.Place(got.Device, got.Order)
		}
		return placed(e, got.Evaluations), nil
	}}
}

// Phases is the specialised solver; it knows the run time alone.
func Phases(name string, c phase.Config) Method {
	return Method{name, func(ctx context.Context, p *sched.Problem, o sched.Objective, _ int, r *rand.Rand) (*Found, error) {
		if o != sched.RunTime {
			return nil, ErrNotApplicable
		}
		got, err := phase.Solve(ctx, p, c, r)
		if err != nil {
			return nil, err
		}
		return &Found{got.Device, got.Sequence, 0}, nil
	}}
}

// CPSAT is the constraint solver on the model of phases; it knows the run time
// alone.
func CPSAT(l *cpsat.Library, c cp.Config) Method {
	return Method{"CP-SAT", func(ctx context.Context, p *sched.Problem, o sched.Objective, _ int, r *rand.Rand) (*Found, error) {
		if o != sched.RunTime {
			return nil, ErrNotApplicable
		}
		got, err := cp.Solve(ctx, l, p, c, r)
		if err != nil {
			return nil, err
		}
		return &Found{got.Device, got.Sequence, 0}, nil
	}}
}
