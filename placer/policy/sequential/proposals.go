package sequential

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"placer/graph/unit"
	"placer/plan"
)

// Proposal is a rollout that is worth making on a graph never seen: the level at
// which it decides, the heuristic prior that it follows, and the weight of what was
// learned.
type Proposal struct {
	Level   string  `json:"level"`
	Prior   int     `json:"prior"`   // number in heuristics
	Learned float32 `json:"learned"` // 0 or 1
}

// timeStepName is the level of an unrolled network's time steps; a graph without them
// has segments in their place.
const timeStepName = "time step"

// proposals returns all that there are, in a fixed order.
func proposals() (all []Proposal) {
	names := []string{timeStepName}
	for _, l := range levels {
		names = append(names, l.String())
	}
	for _, level := range names {
		for _, learned := range []float32{1, 0} {
			for prior := range heuristics() {
				all = append(all, Proposal{level, prior, learned})
			}
		}
	}
	return all
}

// at returns the instance that x decides on.
func (f *Features) at(x Proposal) (*instance, int) {
	name := x.Level
	if name == timeStepName && len(f.instances) <= timeStep {
		name = unit.Segment.String()
	}
	for i, s := range f.instances {
		if s.name == name {
			return s, i
		}
	}
	return f.instances[0], 0
}

// Direct makes the policy's k best proposals on f, a greedy rollout each, and has the
// simulator judge every one of them: nothing is chosen among drafts. There are fewer
// when ctx ends.
func (p *Policy) Direct(ctx context.Context, f *Features, k int) ([]Sample, error) {
	all := p.proposed()
	out := make([]Sample, 0, k)
	for _, x := range all[:min(k, len(all))] {
		if ctx.Err() != nil {
			break
		}
		out = append(out, p.propose(f, x, nil))
	}
	if len(out) == 0 {
		return nil, ctx.Err()
	}
	return out, nil
}

// WithoutLearning returns the policy that makes the same proposals and follows their
// priors alone: what p's training is worth beside it.
func (p *Policy) WithoutLearning() *Policy {
	q := *p
	q.proposals = nil
	for _, x := range p.proposed() {
		x.Learned = 0
		if !slices.Contains(q.proposals, x) {
			q.proposals = append(q.proposals, x)
		}
	}
	return &q
}

// propose makes one proposal and has it judged. A rollouts of the same instance may be
// given to be used again.
func (p *Policy) propose(f *Features, x Proposal, e *rollouts) Sample {
	s, l := f.at(x)
	if e == nil || e.instance != s {
		e = newRollouts(p.net, s)
	}
	prior := heuristics()[x.Prior]
	prior.learned = x.Learned
	e.roll([]heuristic{prior}, passes-1, false, sampler([]float32{0}, rand.New(rand.NewPCG(0, 0)), s.d)) // greedy: nothing is drawn
	y := Sample{Decision: plan.Decision{Device: make([]uint8, len(s.part.Of))}, level: l, clock: e.states[0].soonest}
	s.place(e.states[0].best, y.Device)
	y.Decision = f.decoder(s).decide(y.Device, p.net.tasksOf(s).likeliest())
	y.Score = f.problem.Evaluator.Evaluate(y.Decision)
	return y
}

// proposed returns the policy's proposals, the best first; a policy that never chose
// any has them in turns over levels, learned first.
func (p *Policy) proposed() []Proposal {
	if len(p.proposals) > 0 {
		return p.proposals
	}
	all := proposals()
	random := rand.New(rand.NewPCG(0, 0x70))
	random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// mostProposals is the number that a policy keeps.
const mostProposals = 64

// firstJudged is the number of a family's first graph on which proposals are judged:
// training does not come that far.
const firstJudged = 1 << 20

// chooseProposals tries all proposals on graphs of the training families and returns
// those worth making.
func (t *pretraining) chooseProposals(ctx context.Context, p *Policy) ([]Proposal, error) {
	all := proposals()
	var times [][]float64
	for _, f := range t.families {
		for i := range t.c.Judged {
			x, err := t.newExample(ctx, f, firstJudged+i)
			if err != nil {
				return nil, err
			}
			w, err := NewFeatures(x.problem)
			if err != nil {
				return nil, err
			}
			row, e := make([]float64, len(all)), (*rollouts)(nil)
			for c, y := range all {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				s, _ := w.at(y)
				if e == nil || e.instance != s {
					e = newRollouts(p.net, s)
				}
				row[c] = relative(p.propose(w, y, e).Score, s, x.expert)
			}
			times = append(times, row)
		}
	}
	var chosen []Proposal
	for _, c := range choose(times, mostProposals) {
		chosen = append(chosen, all[c])
	}
	return chosen, nil
}

// choose returns the proposals, of those that columns stand for, that make the best of
// the first n shortest in the geometric mean for every n, as far as taking one after
// another does: times is [graphs][columns], relative to anything.
func choose(times [][]float64, n int) (chosen []int) {
	if len(times) == 0 {
		return nil
	}
	best := make([]float64, len(times))
	for g := range best {
		best[g] = math.Inf(1)
	}
	// Where nothing is known yet, a graph counts by the logarithm of its best.
	worth := func(c int) (sum float64) {
		for g, row := range times {
			sum += math.Log(min(best[g], row[c]))
		}
		return sum
	}
	known := math.Inf(1)
	for range min(n, len(times[0])) {
		at, least := -1, known
		for c := range times[0] {
			if w := worth(c); w < least-1e-12 {
				at, least = c, w
			}
		}
		if at < 0 { // nothing gets better any more
			break
		}
		known = least
		chosen = append(chosen, at)
		for g, row := range times {
			best[g] = min(best[g], row[at])
		}
	}
	return chosen
}
