package transfer

import (
	"errors"
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
	// keep, if not nil, is shown every sample.
	keep func(device []uint8, score plan.Score)
	// stop, if not nil, ends a round between two evaluations.
	stop func() bool
}

// errStopped says that a round was ended by stop; nothing was learned from it.
var errStopped = errors.New("stopped")

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
	iterations, first := 1, 0
	if t.Policy.config.Iterations > 1 && t.random.IntN(2) == 0 {
		iterations, first = 2, s.turns
	}
	turn := 0
	noise := t.random.Float64() * 0.6
	level := []*grouping{&s.chain, &s.segment, &s.layer}[t.random.IntN(3)]
	spoilt := map[int32]int32{}
	t.pass.units(s.static)
	t.eps.roll(s, t.pass, 1, iterations, true, func(k int, u int32, _ []float32, ok []bool) int32 {
		turn++
		d := teacher[u]
		if turn <= first {
			if t.random.Float64() < noise/4 {
				d = int32(t.random.IntN(s.d))
			} else if w, ok := spoilt[level.of[u]]; ok {
				if w >= 0 {
					d = w
				}
			} else {
				spoilt[level.of[u]] = -1
				if t.random.Float64() < noise {
					spoilt[level.of[u]] = int32(t.random.IntN(s.d))
				}
			}
		}
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
	loss, accuracy = t.pass.imitate(t.eps, weight, first)
	return loss, accuracy, constantAccuracy(t.eps, weight, first, s.d)
}

// constantSegment is the number of decisions of a segment in constantAccuracy: a
// tenth of a usual graph.
const constantSegment = 32

// constantAccuracy is the best that answers can do which are the same for all of
// a segment's decisions: a policy that does no better has not learned to tell
// units apart.
func constantAccuracy(e *episodes, weight []float32, first, devices int) float64 {
	right, sum := 0.0, 0.0
	votes := make([]float64, devices)
	for lo := first; lo < len(e.of); lo += constantSegment {
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

// Reinforce samples s k times and takes epochs steps of PPO.
func (t *Trainer) Reinforce(s *Scene, k, epochs int, baseline float64, o objective, rate float64) (Outcome, error) {
	temperature := make([]float32, k)
	for i := range temperature {
		temperature[i] = 1
	}
	t.pass.units(s.static)
	t.eps.roll(s, t.pass, k, t.Policy.config.Iterations, true, sampler(temperature, t.random, s.d))
	if len(t.device) != len(s.part.Of) {
		t.device = make([]uint8, len(s.part.Of))
	}
	reward := make([]float32, k)
	out := Outcome{Best: math.Inf(1)}
	for i := range k {
		if t.stop != nil && t.stop() {
			return out, errStopped
		}
		t.eps.placement(i, t.device)
		r := s.problem.Evaluator.Evaluate(t.device, s.problem.Priority)
		if t.keep != nil {
			t.keep(t.device, r)
		}
		x := r.Seconds / baseline
		if !r.Feasible() {
			x = 3 * (1 + float64(r.Overflow)/float64(s.memory[0]))
		}
		x = min(x, 5)
		reward[i] = -float32(math.Sqrt(x))
		out.Mean += x / float64(k)
		out.Best = min(out.Best, x)
	}
	mean := vec.Sum(reward) / float32(k)
	dev := float32(math.Sqrt(float64(vec.SumSquares(reward, mean)) / float64(k)))
	for i := range reward {
		reward[i] = (reward[i] - mean) / (dev + 1e-4)
	}
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

// Objective returns PPO's constants.
func Objective(clip, entropy float64) objective { return objective{clip, entropy} }

// Step moves the weights by the gradient collected.
func (t *Trainer) Step(rate float64) error {
	_, err := t.adam.Step(t.Policy.net.params, rate)
	return err
}
