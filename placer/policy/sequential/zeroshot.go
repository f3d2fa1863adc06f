package sequential

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"

	"placer/baselines/search/anneal"
	"placer/plan"
)

// A zero-shot placement makes many rollouts by forward passes and keeps those that end
// soonest by the policy's own schedule, which costs a hundredth of a simulation and knows
// nothing of it. Those of them are evaluated whose steps on the coarsened graph are
// shortest; the best are then improved on that graph, and what comes of it is evaluated too
// (docs/adr/0056-zero-shot-on-the-coarsened-graph.md).

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
	// drafts is the number of rollouts for each sample among which the coarsened graph
	// chooses.
	drafts   int
	improver improverConfig
}

// defaultZeroShot is for placing at once: one greedy round, for by drawn problems two more
// at temperatures bring nothing.
func defaultZeroShot() zeroShotConfig {
	return zeroShotConfig{learned: []float32{0, 1}, rounds: 1, hottest: 0.7, work: 400_000_000, scoring: 4, stepsPerSecond: 10_000_000, abreast: 14, alike: 0.002, listed: 8, drafts: 3, improver: defaultImprover()}
}

// varied is for fine-tuning, which learns from all samples and has minutes: rollouts at
// temperatures besides, chosen by the own schedule alone, and none improved.
func varied() zeroShotConfig {
	c := defaultZeroShot()
	c.rounds, c.drafts, c.improver.share = 3, 1, 0
	return c
}

// roundWork returns the work of following every prior once at every level, in steps.
func (c zeroShotConfig) roundWork(f *Features) (sum int) {
	for l := range level(len(f.at)) {
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
	steps := c.roundsOf(f) * c.roundWork(f)
	if s := f.instance(atCells); c.improver.share > 0 {
		n := c.improver.placements(s, DefaultSamples)
		steps += n * c.improver.stepsOf(s, n) * s.nodes.Graph.NumOps()
	}
	return float64(steps) / c.stepsPerSecond
}

// ZeroShot returns k samples of f, each evaluated once by the simulator: first the
// greedy rollout whose own schedule ends soonest, then, of those that end soonest of each
// level and each weight of what was learned, the ones with the shortest steps on the
// coarsened graph, the expert's placement, unless the policy has no guides, and
// improvements of the best of these. Where the schedule is decided too, the last is the best
// of the others in another order. There are fewer when ctx ends, or where drafts are alike.
func (p *Policy) ZeroShot(ctx context.Context, f *Features, k int) ([]Sample, error) {
	reorders := f.reorders(k)
	if reorders {
		k--
	}
	out, err := p.zeroShot(ctx, f, k, defaultZeroShot())
	if err == nil && reorders {
		out = f.reordered(ctx, out)
	}
	return out, err
}

// zeroShot is ZeroShot under c, without the sample in another order.
func (p *Policy) zeroShot(ctx context.Context, f *Features, k int, c zeroShotConfig) ([]Sample, error) {
	random := rand.New(rand.NewPCG(f.problem.Seed, 0x7a))
	f.sketch = nil
	if c.improver.share > 0 {
		var err error
		if f.sketch, err = anneal.NewSketch(f.problem); err != nil {
			return nil, err
		}
	}
	improved, drafts := 0, k // of the k samples; rollouts to choose the others among
	if f.sketch != nil {
		improved, drafts = c.improver.placements(f.instance(atCells), k), c.drafts*k
	}
	// Make rollouts; keep those that end soonest by the policy's own schedule.
	out := p.drafts(ctx, f, drafts, c, random)
	if len(out) == 0 {
		return nil, ctx.Err()
	}
	// Of these, keep those whose steps on the coarsened graph are shortest.
	if f.sketch != nil {
		out = shortest(ctx, f.sketch, out, k-improved, c.alike)
	}
	// Evaluate them, and the expert's placement as the last.
	if c.improver.share > 0 && k > 1 && !p.net.unguided {
		out = append(out[:min(len(out), k-improved-1)], Sample{Decision: plan.Decision{Device: f.coarse.expert}})
	}
	for i := range out {
		if i > 0 && ctx.Err() != nil {
			return out[:i], nil
		}
		f.complete(p, &out[i])
	}
	// Improve the best on the coarsened graph; evaluate what comes of it.
	if improved == 0 {
		return out, nil
	}
	return p.improve(ctx, f, out, improved, c.improver, random), nil
}

// complete decides the other tasks of a sample that has devices alone, and evaluates it.
func (f *Features) complete(p *Policy, x *Sample) {
	x.Decision = f.decision(p, x.level, x.Device)
	x.Score = f.problem.Evaluator.Evaluate(x.Decision)
}

// drafts makes rollouts under every prior, at every level and weight of what was learned,
// and returns the k to go on with: those that end soonest by their own schedules, from each
// level and weight in turn. Runs of time steps count as segments, of which one or the other
// suits.
func (p *Policy) drafts(ctx context.Context, f *Features, k int, c zeroShotConfig, random *rand.Rand) []Sample {
	greedy := &shortlist{most: 1}
	lists := make([]*shortlist, len(levels)*len(c.learned))
	for i := range lists {
		lists[i] = &shortlist{most: c.listed * k}
	}
	for l := range level(len(f.at)) {
		if ctx.Err() != nil {
			break
		}
		s := f.instance(l)
		kind := l
		if l == atTimeSteps {
			kind = atSegments
		}
		e := newRollouts(p.net, s).until(ctx)
		for i, learned := range c.learned {
			list := lists[int(kind)*len(c.learned)+i]
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
	return merge(greedy.of, lists, k, c.alike)
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
			var made []*state
			if hottest == 0 {
				made = e.greedy(priors)
			} else {
				made = e.roll(priors, rolling{choose: sampler(temperature, random, e.d), refinements: passes - 1})
			}
			for _, x := range made {
				if !yield(x) {
					return
				}
			}
		}
	}
}
