package sequential

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"

	"placer/graph/unit"
)

// A zero-shot placement makes many rollouts by forward passes and has those evaluated
// that end soonest by the policy's own schedule, which costs a hundredth of a
// simulation and knows nothing of it.

// DefaultSamples is the number of samples of a zero-shot placement: the placements
// that are evaluated.
const DefaultSamples = 16

// passes is the number of times that a rollout is made, each time but the first as the
// refinement of the one before (GO's iterations); the soonest counts.
const passes = 4

// zeroShotConfig bounds the work of a zero-shot placement. Work is counted in steps of
// schedules and not in seconds, so that no placement depends on the machine that makes
// it.
type zeroShotConfig struct {
	// learned are the weights of what was learned that every prior is followed with: a
	// prior alone carries over to any graph, what was learned goes further on most.
	learned []float32
	// rounds is how often every prior is followed at each level and weight, at most:
	// first greedily, then at temperatures of up to hottest.
	rounds  int
	hottest float32
	// work bounds the rounds of large graphs: half a minute of one core where a
	// second has stepsPerSecond. The first round is always made.
	work int
	// scoring is the work of scoring one device for one decision, in steps.
	scoring int
	// stepsPerSecond tells about how long rollouts take before they are made. It was
	// measured on one core of a server of 2023, and decides nothing but whether a
	// fine-tuning declines a short budget.
	stepsPerSecond float64
	// abreast is the number of rollouts that are made side by side; the random stream
	// goes through them in this order.
	abreast int
	// alike is the relative difference of two schedules' ends below which one of them
	// is evaluated only where others do not suffice: rollouts of like priors end in
	// nearly the same plan.
	alike float64
	// listed is the number of rollouts kept for each sample and list.
	listed int
}

func defaultZeroShot() zeroShotConfig {
	return zeroShotConfig{learned: []float32{0, 1}, rounds: 3, hottest: 0.7, work: 400_000_000, scoring: 4, stepsPerSecond: 10_000_000, abreast: 14, alike: 0.002, listed: 8}
}

// roundWork returns the work of following every prior once at every level, in steps.
func (c zeroShotConfig) roundWork(f *Features) (sum int) {
	for l := range f.at {
		s := f.instance(l)
		sum += len(c.learned) * passes * len(heuristics()) * (len(s.steps) + c.scoring*s.decisions*s.d)
	}
	return sum
}

// roundsOf returns how often every prior is followed: less often for large graphs.
func (c zeroShotConfig) roundsOf(f *Features) int {
	return max(1, min(c.rounds, c.work/max(1, c.roundWork(f))))
}

// seconds returns about how long the rollouts take.
func (c zeroShotConfig) seconds(f *Features) float64 {
	return float64(c.roundsOf(f)*c.roundWork(f)) / c.stepsPerSecond
}

// ZeroShot returns k samples of f, each evaluated once by the simulator: first the
// greedy rollout whose own schedule ends soonest, then those that end soonest of each
// level and each weight of what was learned; runs of time steps count as segments,
// of which one or the other suits. There are fewer when ctx ends.
func (p *Policy) ZeroShot(ctx context.Context, f *Features, k int) ([]Sample, error) {
	c := defaultZeroShot()
	random := rand.New(rand.NewPCG(f.problem.Seed, 0x7a))
	greedy := &shortlist{most: 1}
	lists := make([]*shortlist, len(levels)*len(c.learned))
	for i := range lists {
		lists[i] = &shortlist{most: c.listed * k}
	}
	for l := range f.at {
		s := f.instance(l)
		kind := l
		if l == timeStep {
			kind = slices.Index(levels, unit.Segment)
		}
		e := newRollouts(p.net, s)
		for i, learned := range c.learned {
			list := lists[kind*len(c.learned)+i]
			for round := range c.roundsOf(f) {
				for x := range e.followAll(ctx, c, learned, float32(min(1, round))*c.hottest, random) {
					if round == 0 {
						greedy.offer(l, x)
					}
					list.offer(l, x)
				}
			}
		}
	}
	if len(greedy.of) == 0 {
		return nil, ctx.Err()
	}
	out := merge(greedy.of, lists, k, c.alike)
	for i := range out {
		if i > 0 && ctx.Err() != nil {
			return out[:i], nil
		}
		out[i].Decision = f.decision(p, out[i].level, out[i].Device)
		out[i].Score = f.problem.Evaluator.Evaluate(out[i].Decision)
	}
	return out, nil
}

// followAll follows every prior once, with that weight of what was learned and at
// temperatures from 0 to hottest, and yields what comes of each. It ends early when ctx
// does.
func (e *rollouts) followAll(ctx context.Context, c zeroShotConfig, learned, hottest float32, random *rand.Rand) iter.Seq[*state] {
	return func(yield func(*state) bool) {
		temperature := make([]float32, c.abreast)
		for priors := range slices.Chunk(heuristics(), c.abreast) {
			if ctx.Err() != nil {
				return
			}
			for i := range priors {
				priors[i].learned = learned
				temperature[i] = hottest * random.Float32()
			}
			e.roll(priors, passes-1, false, sampler(temperature, random, e.d))
			for _, x := range e.states[:len(priors)] {
				if !yield(x) {
					return
				}
			}
		}
	}
}
