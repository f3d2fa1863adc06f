package transfer

import (
	"math"
	"math/rand/v2"
	"slices"

	"placer/nn"
	"placer/nn/vec"
	"placer/plan"
)

// Trainer improves a policy on scenes.
type Trainer struct {
	Policy *Policy
	adam   *nn.Adam
	pass   *pass
	eps    *episodes
	random *rand.Rand
	device []uint8
}

// NewTrainer returns a trainer of p.
func NewTrainer(p *Policy, random *rand.Rand) *Trainer {
	return &Trainer{Policy: p, adam: nn.NewAdam(nn.DefaultAdam()), pass: &pass{n: p.net}, eps: &episodes{}, random: random}
}

// Labels returns what a placement, [N], decides for each unit of s, [U]: the
// device of most of its time.
func (s *Scene) Labels(device []uint8) []int32 {
	seconds := s.problem.Evaluator.OpSeconds(0)
	of := make([]int32, s.part.NumUnits())
	votes := make([]float64, s.d)
	for u, ops := range s.part.Ops {
		clear(votes)
		for _, i := range ops {
			votes[device[i]] += seconds[i] + 1e-12
		}
		for d := range votes {
			if votes[d] > votes[of[u]] {
				of[u] = int32(d)
			}
		}
	}
	return of
}

// Imitate adds the gradient of the cross entropy of a teacher's decisions, [U],
// on s, with devices named in the order of their first use.
func (t *Trainer) Imitate(s *Scene, teacher []int32) (loss, accuracy, constant float64) {
	name := make([]int32, s.d)
	for d := range name {
		name[d] = none
		if !s.uniform {
			name[d] = int32(d)
		}
	}
	t.pass.units(s.static)
	t.eps.roll(s, t.pass, draw(t.random, 1), 0, true, func(k int, u int32, _ []float32, ok []bool) int32 {
		d := teacher[u]
		if name[d] == none {
			for e := range t.eps.states[k].number {
				if t.eps.states[k].number[e] == none {
					name[d] = int32(e)
					break
				}
			}
		}
		ok[name[d]] = true
		return name[d]
	})
	weight := make([]float32, len(s.own))
	for u, w := range s.own {
		weight[u] = float32(math.Sqrt(w/s.mean)) + 0.01
		for _, c := range s.near[u] {
			weight[u] += float32(math.Sqrt(c.seconds/s.mean)) / 4
		}
	}
	loss, accuracy = t.pass.imitate(t.eps, weight)
	return loss, accuracy, constantAccuracy(t.eps, weight, s.d)
}

// constantSegment is the number of decisions of a segment in constantAccuracy: a
// tenth of a usual graph.
const constantSegment = 32

// constantAccuracy is the best that answers can do which are the same for all of
// a segment's decisions: a policy that does no better has not learned to tell
// units apart.
func constantAccuracy(e *episodes, weight []float32, devices int) float64 {
	right, sum := 0.0, 0.0
	votes := make([]float64, devices)
	for lo := 0; lo < len(e.of); lo += constantSegment {
		clear(votes)
		for r := lo; r < min(lo+constantSegment, len(e.of)); r++ {
			votes[e.chosen[r]] += float64(weight[e.of[r]])
			sum += float64(weight[e.of[r]])
		}
		right += slices.Max(votes)
	}
	return right / sum
}

// Outcome is what a round of samples came to.
type Outcome struct {
	Mean, Best, Entropy, Clipped float64
}

// Reinforce samples s k times, some guides' advice a few times each, and takes
// epochs steps of PPO. A random number of drafts comes before the samples.
func (t *Trainer) Reinforce(s *Scene, k, epochs int, baseline float64, o objective, rate float64) (Outcome, error) {
	temperature := make([]float32, k)
	for i := range temperature {
		temperature[i] = 1
	}
	t.pass.units(s.static)
	t.eps.roll(s, t.pass, draw(t.random, k), t.random.IntN(revisions), true, sampler(temperature, t.random, s.d))
	if len(t.device) != len(s.part.Of) {
		t.device = make([]uint8, len(s.part.Of))
	}
	reward := make([]float32, k)
	out := Outcome{Best: math.Inf(1)}
	for i := range k {
		t.eps.placement(i, t.device)
		r := s.problem.Evaluator.Evaluate(t.device, s.problem.Priority)
		x := ratio(r, s, baseline)
		reward[i] = -float32(math.Sqrt(x))
		out.Mean += x / float64(k)
		out.Best = min(out.Best, x)
	}
	advantages(reward, together)
	for range epochs {
		out.Entropy, out.Clipped = t.pass.reinforce(t.eps, reward, o)
		if rate > 0 {
			if err := t.Step(rate); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// ratio is the time of a placement over the baseline; one that does not fit counts
// as long, the longer the more it lacks.
func ratio(r plan.Score, s *Scene, baseline float64) float64 {
	if !r.Feasible() {
		return min(5, 3*(1+float64(r.Overflow)/float64(s.memory[0])))
	}
	return min(5, r.Seconds/baseline)
}

// advantages turns the rewards of samples, of which n in a row have the same guide,
// into advantages over the mean of these n, in deviations of all.
func advantages(r []float32, n int) {
	mean := vec.Sum(r) / float32(len(r))
	scale := 1 / (float32(math.Sqrt(float64(vec.SumSquares(r, mean))/float64(len(r)))) + 1e-3)
	for lo := 0; lo < len(r); lo += n {
		g := r[lo:min(lo+n, len(r))]
		mean := vec.Sum(g) / float32(len(g))
		for i := range g {
			g[i] = (g[i] - mean) * scale
		}
	}
}

// Objective returns PPO's constants, with no weight on what guides advise.
func Objective(clip, entropy float64) objective { return objective{clip: clip, entropy: entropy} }

// Step moves the weights by the gradient collected.
func (t *Trainer) Step(rate float64) error {
	_, err := t.adam.Step(t.Policy.net.params, rate)
	return err
}
