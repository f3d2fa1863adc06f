package sequential

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"placer/nn"
	"placer/plan"
)

// trainer improves a policy on instances.
type trainer struct {
	policy   *Policy
	adam     *nn.Adam
	rollouts *rollouts
	random   *rand.Rand
	device   []uint8
}

func newTrainer(p *Policy, random *rand.Rand) *trainer {
	return &trainer{policy: p, adam: nn.NewAdam(nn.DefaultAdam()), rollouts: &rollouts{pass: &pass{n: p.net}}, random: random}
}

// step moves the weights by the gradient collected.
func (t *trainer) step(rate float64) error {
	_, err := t.adam.Step(t.policy.net.params, rate)
	t.policy.net.changed()
	return err
}

// imitation is what a step of imitation came to.
type imitation struct {
	Loss     float64 // cross entropy
	Accuracy float64 // share of units decided as the teacher did, by weight
	Constant float64 // the share of the best answer that is the same for all units of a stretch
}

// imitate adds the gradient of the cross entropy of a teacher's decisions, [U],
// on s, with devices named in the order of their first use.
func (t *trainer) imitate(s *instance, teacher []int32) imitation {
	e := t.rollouts
	e.on(s)
	names := newDeviceNames(s)
	e.roll(drawHeuristics(t.random, 1, 1), rolling{record: true, choose: func(k int, u int32, _ []float32, ok []bool) int32 {
		d := names.of(teacher[u], e.states[k].number)
		ok[d] = true
		return d
	}})
	weight := make([]float32, len(s.own))
	for u, w := range s.own {
		weight[u] = float32(math.Sqrt(w/s.mean)) + 0.01
		_, seconds := s.exchanges.Neighbours(int32(u))
		for _, x := range seconds {
			weight[u] += float32(math.Sqrt(x/s.mean)) / 4
		}
	}
	loss, accuracy := e.imitationGradient(weight)
	return imitation{loss, accuracy, e.constantAccuracy(weight)}
}

// stretch is the number of decisions that constantAccuracy answers at once: a tenth
// of a usual graph.
const stretch = 32

// constantAccuracy is the best that answers can do which are the same for all of
// a stretch of decisions: a policy that does no better has not learned to tell
// units apart.
func (e *rollouts) constantAccuracy(weight []float32) float64 {
	right, sum := 0.0, 0.0
	votes := make([]float64, e.d)
	for lo := 0; lo < len(e.of); lo += stretch {
		clear(votes)
		for r := lo; r < min(lo+stretch, len(e.of)); r++ {
			w := float64(weight[e.of[r]])
			votes[e.chosen[r]] += w
			sum += w
		}
		right += slices.Max(votes)
	}
	return right / sum
}

// improvement is what a step of PPO, or of self-labelling, came to.
type improvement struct {
	Mean, Best float64 // time over the expert's, of the mean and of the best rollout
	Entropy    float64 // mean of a decision
	Clipped    float64 // share of decisions
}

// lesson is an instance to improve on.
type lesson struct {
	*instance
	expert float64 // step time of the expert's placement, in seconds, that rewards are relative to
}

// sample makes k rollouts of x, each prior per times in a row, after a random number of
// refinements, and returns their step times over the expert's. It ends with ctx, and
// nothing has been learned then.
func (t *trainer) sample(ctx context.Context, x lesson, k, per int) (times []float64, out improvement, err error) {
	e := t.rollouts
	e.on(x.instance)
	e.until(ctx)
	priors := drawHeuristics(t.random, k, per)
	e.roll(priors, rolling{refinements: t.random.IntN(passes), record: true, choose: sampler(slices.Repeat([]float32{1}, k), t.random, x.d)})
	e.stopped = nil // what is sampled is learned from to the end
	t.device = resized(t.device, len(x.part.Of))
	times, out = make([]float64, k), improvement{Best: math.Inf(1)}
	for i, state := range e.states[:k] {
		if err := ctx.Err(); err != nil {
			return nil, out, err
		}
		x.place(state.device, t.device)
		times[i] = relative(x.problem.Evaluator.Evaluate(plan.Decision{Device: t.device, Priority: x.problem.Priority}), x.instance, x.expert)
		out.Mean += times[i] / float64(k)
		out.Best = min(out.Best, times[i])
	}
	return times, out, nil
}

// ppo makes c.Samples rollouts of x, some priors a few times each, and takes
// c.Epochs steps of PPO at a rate, on -sqrt(time) (GO, section 4.1).
func (t *trainer) ppo(ctx context.Context, x lesson, c *PretrainConfig, rate float64) (improvement, error) {
	times, out, err := t.sample(ctx, x, c.Samples, perPrior)
	if err != nil {
		return out, err
	}
	advantage := rewards(times)
	advantages(advantage, perPrior)
	for range c.Epochs {
		out.Entropy, out.Clipped = t.rollouts.ppoGradient(advantage, ppoWeights{c.Clip, c.Entropy, c.Prior})
		if err := t.step(rate); err != nil {
			return out, err
		}
	}
	return out, nil
}

// selfLabel makes c.Samples rollouts of x, c.Alike by each prior, and takes a step of the
// gradient by which the best of each prior becomes likelier (self-labelling: Corsini and
// others, NeurIPS 2024). Where all of a prior are as good none of them is a label.
func (t *trainer) selfLabel(ctx context.Context, x lesson, c *PretrainConfig, rate float64) (improvement, error) {
	times, out, err := t.sample(ctx, x, c.Samples, c.Alike)
	if err != nil {
		return out, err
	}
	best := make([]bool, len(times))
	for lo := 0; lo < len(times); lo += c.Alike {
		group := times[lo:min(lo+c.Alike, len(times))]
		if slices.Max(group) > slices.Min(group) {
			best[lo+slices.Index(group, slices.Min(group))] = true
		}
	}
	if !slices.Contains(best, true) {
		return out, nil
	}
	out.Entropy = t.rollouts.selfLabelGradient(best, float32(c.Prior))
	return out, t.step(rate)
}
