package sequential

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"

	"placer/graph/unit"
	"placer/plan"
)

// Proposal is a rollout that is worth making on a graph never seen: the level at
// which it decides, the heuristic prior that it follows, and the weight of what was
// learned.
type Proposal struct {
	Level   string
	Prior   int     // number in heuristics
	Learned float32 // 0 or 1
}

// timeStepName is the level of an unrolled network's time steps; a graph without them
// has segments in their place.
const timeStepName = "time step"

// allPriors are the heuristic priors that proposals follow, by number.
var allPriors = heuristics()

// perLevel is the number of proposals at one level.
var perLevel = 2 * len(allPriors)

// allProposals are those that trials count.
var allProposals = proposals()

// proposals returns all that there are, in a fixed order: by level, time steps first.
func proposals() (all []Proposal) {
	names := []string{timeStepName}
	for _, l := range levels {
		names = append(names, l.String())
	}
	for _, level := range names {
		for _, learned := range []float32{1, 0} {
			for prior := range allPriors {
				all = append(all, Proposal{level, prior, learned})
			}
		}
	}
	return all
}

// levelOf returns the level at which x decides.
func (f *Features) levelOf(x Proposal) level {
	if x.Level != timeStepName {
		return level(max(0, slices.IndexFunc(levels[:], func(l unit.Level) bool { return l.String() == x.Level })))
	}
	if len(f.at) > int(atTimeSteps) {
		return atTimeSteps
	}
	return atSegments
}

// Direct makes the policy's k best proposals on f, a greedy rollout each, and has the
// simulator judge every one of them: nothing is chosen among drafts. Where the schedule is
// decided too, the last of several is the best of the others in another order (see
// reordered). There are fewer when ctx ends.
func (p *Policy) Direct(ctx context.Context, f *Features, k int) ([]Sample, error) {
	made, reorders := k, f.reorders(k)
	if reorders {
		made--
	}
	out := p.rollOut(ctx, f, p.proposed(f, made))
	out = out[:f.judge(ctx, out)]
	if len(out) == 0 {
		return nil, ctx.Err()
	}
	if reorders {
		out = f.reordered(ctx, out)
	}
	return out, nil
}

// WithoutLearning returns the policy that makes the same proposals and follows their
// priors alone: what the network's training is worth beside it.
func (p *Policy) WithoutLearning() *Policy {
	q := *p
	q.priorsOnly = true
	return &q
}

// rollOut makes these proposals on f, a greedy rollout each, side by side where they
// decide at the same level. Those that ctx leaves no time for are missing.
func (p *Policy) rollOut(ctx context.Context, f *Features, all []Proposal) []Sample {
	out, by := make([]Sample, len(all)), map[level]*rollouts{}
	for _, b := range p.batches(f, all) {
		if ctx.Err() != nil {
			break
		}
		s := f.instance(b.level)
		if by[b.level] == nil {
			by[b.level] = newRollouts(p.net, s).until(ctx)
		}
		priors := make([]heuristic, len(b.proposals))
		for n, i := range b.proposals {
			priors[n] = allPriors[all[i].Prior]
			priors[n].learned = b.learned
		}
		for n, x := range by[b.level].greedy(priors) {
			y := Sample{Decision: plan.Decision{Device: make([]uint8, len(s.part.Of))}, level: b.level, clock: x.soonest}
			s.place(x.best, y.Device)
			y.Decision = f.decision(p, b.level, y.Device)
			out[b.proposals[n]] = y
		}
	}
	return slices.DeleteFunc(out, func(y Sample) bool { return y.Device == nil })
}

// batch is proposals whose rollouts are made side by side.
type batch struct {
	level     level
	learned   float32
	proposals []int // indices of all
}

// batches divides proposals among batches of one level and one weight of what was learned.
func (p *Policy) batches(f *Features, all []Proposal) (divided []batch) {
	var kinds []batch // each level and weight, with all its proposals
	for i, x := range all {
		b := batch{level: f.levelOf(x), learned: x.Learned}
		if p.priorsOnly {
			b.learned = 0
		}
		k := slices.IndexFunc(kinds, func(y batch) bool { return y.level == b.level && y.learned == b.learned })
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, b)
		}
		kinds[k].proposals = append(kinds[k].proposals, i)
	}
	for _, b := range kinds {
		for some := range slices.Chunk(b.proposals, defaultZeroShot().abreast) {
			divided = append(divided, batch{b.level, b.learned, some})
		}
	}
	return divided
}

// judge has the simulator judge the samples in turn, each plan once, until ctx ends, and
// returns how many are judged.
func (f *Features) judge(ctx context.Context, all []Sample) int {
	for i := range all {
		if ctx.Err() != nil {
			return i
		}
		x := &all[i]
		same := slices.IndexFunc(all[:i], func(y Sample) bool {
			return (y.level == x.level || f.problem.Tasks == plan.Place) && bytes.Equal(y.Device, x.Device)
		})
		if same >= 0 {
			x.Score = all[same].Score
			continue
		}
		x.Score = f.problem.Evaluator.Evaluate(x.Decision)
	}
	return len(all)
}

// proposed returns the policy's first k proposals for f: first those that by the trials
// bring most for their work. There are fewer where more would not help. A policy whose trials
// tell of none that helps, as one that has never tried any, has them in a random order.
func (p *Policy) proposed(f *Features, k int) (chosen []Proposal) {
	if len(p.tried.Times) > 0 {
		var summary []float32
		if p.tried.Width > 0 {
			summary = p.training.standard(f.summary())
		}
		weights := p.tried.weights(summary, nil)
		for _, c := range choose(p.tried.expected(f.cut()), weights, p.work(f), min(k, mostProposals)) {
			chosen = append(chosen, allProposals[c])
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	all := proposals()
	random := rand.New(rand.NewPCG(0, 0x70))
	random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all[:min(k, len(all))]
}

// mostProposals is the number that are put in order for a graph.
const mostProposals = 64
