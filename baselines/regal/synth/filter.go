package synth

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/sched"
)

// Filter keeps graphs on which search pays: BRKGA with High evaluations improves
// the run time of BRKGA with Low by at least Improvement (A.1.4). Both are one
// search, looked at twice.
type Filter struct {
	Search      brkga.Config
	Low, High   int
	Improvement float64
}

// DefaultFilter returns the paper's: 18% from 1,000 to 10,000 evaluations.
func DefaultFilter() Filter {
	return Filter{Search: brkga.Default(), Low: 1000, High: 10000, Improvement: 0.18}
}

// keep reports whether p passes.
func (f Filter) keep(ctx context.Context, p *sched.Problem, r *rand.Rand) bool {
	e := sched.NewEvaluator(p, sched.RunTime)
	got := brkga.Run(ctx, e, brkga.Uniform{}, f.Search, brkga.Budget{Evaluations: f.High, Checkpoints: []int{f.Low, f.High}}, r)
	return got.Checkpoints[1] <= (1-f.Improvement)*got.Checkpoints[0]
}

// Filtered returns graph number k of a seed: the first that passes f among those
// drawn from the stream of seed and k. tried counts them. It returns ctx's error
// when ctx ends first.
func Filtered(ctx context.Context, c Config, f Filter, seed, k uint64) (p *sched.Problem, tried int, err error) {
	draw := rand.New(rand.NewPCG(seed, k))
	search := rand.New(rand.NewPCG(seed^0x6669_6c74_6572, k))
	for ctx.Err() == nil {
		p = c.Generate(draw)
		tried++
		if f.keep(ctx, p, search) && ctx.Err() == nil {
			return renamed(p, fmt.Sprintf("%s-%d-%d", p.Name(), seed, k)), tried, nil
		}
	}
	return nil, tried, ctx.Err()
}

func renamed(p *sched.Problem, name string) *sched.Problem {
	s := p.Spec()
	s.Name = name
	q, err := sched.New(s)
	if err != nil {
		panic("synth: " + err.Error()) // p was one
	}
	return q
}

// Augment returns p with every op time and every tensor size multiplied by its
// own number from U(0.5,1.5), drawn from r (A.1.2). Sizes stay whole.
func Augment(p *sched.Problem, name string, r *rand.Rand) *sched.Problem {
	s := p.Spec()
	s.Name = name
	for i := range s.Time {
		s.Time[i] *= 0.5 + r.Float64()
	}
	for t := range s.Tensors {
		if x := &s.Tensors[t]; !x.Control {
			x.Size = int64(float64(x.Size)*(0.5+r.Float64()) + 0.5)
		}
	}
	q, err := sched.New(s)
	if err != nil {
		panic("synth: " + err.Error()) // a factor changes no structure
	}
	return q
}
