package sequential

import (
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
	e.roll(drawHeuristics(t.random, 1, 1), 0, true, func(k int, u int32, _ []float32, ok []bool) int32 {
		d := names.of(teacher[u], e.states[k].number)
		ok[d] = true
		return d
	})
	weight := make([]float32, len(s.own))
	for u, w := range s.own {
		weight[u] = float32(math.Sqrt(w/s.mean)) + 0.01
		_, seconds := s.exchanges.Neighbours(int32(u))
		for _, x := range seconds {
			weight[u] += float32(math.Sqrt(x/s.mean)) / 4
		}
	}
	loss, accuracy := e.imitate(weight)
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

// improvement is what a step of PPO came to.
type improvement struct {
	Mean, Best float64 // time over the expert's, of the mean and of the best rollout
	Entropy    float64 // mean of a decision
	Clipped    float64 // share of decisions
}

// sample makes k rollouts of s, each prior per times in a row, after a random number of
// refinements, and returns their step times over the expert's, in seconds.
func (t *trainer) sample(s *instance, expert float64, k, per int) (times []float64, out improvement) {
	e := t.rollouts
	e.on(s)
	e.roll(drawHeuristics(t.random, k, per), t.random.IntN(passes), true, sampler(slices.Repeat([]float32{1}, k), t.random, s.d))
	t.device = resized(t.device, len(s.part.Of))
	times, out = make([]float64, k), improvement{Best: math.Inf(1)}
	for i, x := range e.states[:k] {
		s.place(x.device, t.device)
		times[i] = relative(s.problem.Evaluator.Evaluate(plan.Decision{Device: t.device, Priority: s.problem.Priority}), s, expert)
		out.Mean += times[i] / float64(k)
		out.Best = min(out.Best, times[i])
	}
	return times, out
}

// reinforce makes c.Samples rollouts of s, some priors a few times each, and takes
// c.Epochs steps of PPO at a rate. Rewards are relative to the expert's step time, in
// seconds.
func (t *trainer) reinforce(s *instance, expert float64, c *PretrainConfig, rate float64) (improvement, error) {
	times, out := t.sample(s, expert, c.Samples, perPrior)
	reward := make([]float32, len(times))
	for i, r := range times {
		reward[i] = -float32(math.Sqrt(r))
	}
	var err error
	out.Entropy, out.Clipped, err = t.update(reward, perPrior, c.Epochs, ppo{c.Clip, c.Entropy, c.Prior}, rate)
	return out, err
}

// update takes epochs steps of PPO on the recorded rollouts for their rewards, [K], per
// of which in a row have the same prior.
func (t *trainer) update(reward []float32, per, epochs int, o ppo, rate float64) (entropy, clipped float64, err error) {
	advantages(reward, per)
	for range epochs {
		entropy, clipped = t.rollouts.reinforce(reward, o)
		if err := t.step(rate); err != nil {
			return entropy, clipped, err
		}
	}
	return entropy, clipped, nil
}

// label makes c.Samples rollouts of s, c.Alike by each prior, and takes a step of the
// gradient by which the best of each prior becomes likelier (self-labelling: Corsini and
// others, NeurIPS 2024). Where all of a prior are as good none of them is a label.
func (t *trainer) label(s *instance, expert float64, c *PretrainConfig, rate float64) (improvement, error) {
	times, out := t.sample(s, expert, c.Samples, c.Alike)
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
	out.Entropy = t.rollouts.follow(best, float32(c.Prior))
	return out, t.step(rate)
}
