package transfer

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"placer/plan"
)

// Placer places with a pretrained policy as it is: forward passes, and an
// evaluation of each sample to choose among them.
type Placer struct {
	Policy *Policy
	// Samples is the number of placements, the greedy one among them; 0 means
	// DefaultSamples.
	Samples int
}

// DefaultSamples is the number of samples of a zero-shot placement.
const DefaultSamples = 16

var _ plan.Placer = Placer{}

// Name returns "zero-shot".
func (Placer) Name() string { return "zero-shot" }

// Kind returns plan.Policy.
func (Placer) Kind() plan.Kind { return plan.Policy }

// Place samples and returns the best.
func (z Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	w, err := NewView(p)
	if err != nil {
		return nil, err
	}
	samples, err := z.Policy.ZeroShot(ctx, w, z.within(p.Budget))
	if err != nil {
		return nil, err
	}
	best := Best(samples)
	o := &plan.Outcome{Device: best.Device, Score: best.Score, Evaluations: len(samples)}
	if p.Report != nil {
		p.Report(plan.Progress{Method: z.Name(), Evaluations: o.Evaluations, Best: o.Score, Device: o.Device})
	}
	if d := z.Policy.Reach.Distance(w); d > z.Policy.Reach.Limit {
		o.Notes = append(o.Notes, fmt.Sprintf("the pretrained policy is out of its depth: distance %.2f from the nearest training graph, measured up to %.2f", d, z.Policy.Reach.Limit))
	}
	return o, nil
}

// within returns the number of samples within b.
func (z Placer) within(b plan.Budget) int {
	k := z.Samples
	if k <= 0 {
		k = DefaultSamples
	}
	if b.Evaluations > 0 {
		k = min(k, b.Evaluations)
	}
	return k
}

// View is a problem as the policy reads it at every level.
type View struct {
	problem *plan.Problem
	scenes  []*Scene // [levels]
}

// NewView returns p's.
func NewView(p *plan.Problem) (*View, error) {
	w := &View{problem: p}
	for _, l := range levels {
		s, err := NewScene(p, l)
		if err != nil {
			return nil, err
		}
		w.scenes = append(w.scenes, s)
	}
	return w, nil
}

// ZeroShot returns k samples of w: one is greedy at each level, first the one
// whose schedule, as the policy keeps it, ends soonest; the others take turns at
// the levels, at rising temperatures. There are fewer when ctx ends.
func (p *Policy) ZeroShot(ctx context.Context, w *View, k int) ([]Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(w.problem.Seed, 0x7a))
	var out []Sample
	for l, s := range w.scenes {
		out = append(out, p.samples(s, l, Temperatures((k-l+len(levels)-1)/len(levels)), random)...)
	}
	slices.SortStableFunc(out, func(a, b Sample) int {
		if a.Greedy != b.Greedy {
			if a.Greedy {
				return -1
			}
			return 1
		}
		if a.Greedy {
			return cmp.Compare(a.clock, b.clock)
		}
		return 0
	})
	for i := range out {
		if i > 0 && ctx.Err() != nil {
			return out[:i], nil
		}
		out[i].Score = w.problem.Evaluator.Evaluate(out[i].Device, w.problem.Priority)
	}
	return out, nil
}

// samples places s once per temperature, without scores.
func (p *Policy) samples(s *Scene, level int, temperature []float32, random *rand.Rand) []Sample {
	f := &pass{n: p.net}
	f.units(s.static)
	e := &episodes{}
	e.roll(s, f, len(temperature), p.config.Iterations, false, sampler(temperature, random, s.d))
	out := make([]Sample, len(temperature))
	for k := range out {
		out[k] = Sample{Device: make([]uint8, len(s.part.Of)), Greedy: temperature[k] == 0, level: level, clock: e.states[k].clock}
		e.placement(k, out[k].Device)
	}
	return out
}

// Best returns the best of samples, the first of equals.
func Best(samples []Sample) Sample {
	best := samples[0]
	for _, x := range samples[1:] {
		if x.Score.Better(best.Score) {
			best = x
		}
	}
	return best
}

// Temperatures returns those of k samples of a level: 0 first, then rising.
func Temperatures(k int) []float32 {
	t := make([]float32, k)
	for i := 1; i < k; i++ {
		t[i] = coolest + (hottest-coolest)*float32(i-1)/float32(max(1, k-2))
	}
	return t
}

// The range of temperatures of samples that are not greedy. Training leaves little
// chance to it, so more than 1 still gives sensible placements.
const (
	coolest = 0.5
	hottest = 1.5
)
