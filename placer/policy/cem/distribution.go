package cem

import (
	"math"
	"math/rand/v2"

	"placer/nn"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// LeastProbability is what the probability of a level never falls below, so that its
// logarithm is finite. A level that comes to it is hardly ever drawn again.
const LeastProbability = 1e-9

// middleBias is by how much the logit of the middle level of schedules and fusion begins
// above the others': samples of a placement are to differ little in what is chosen beside
// it, so that their scores are the placement's.
const middleBias = 4

// distribution is what decisions are sampled from: each choice by itself, by the
// probabilities of its levels.
type distribution struct {
	heads []rollout.Head
	units int
	of    [][]float64 // [choices][levels], in the order of a decision; 0: not allowed
}

// start returns the distribution that stage s begins with: what was learnt in the stage
// before, softened, or else the prior.
func (l *learner) start(s curriculum.Stage, from curriculum.Learnt) (*distribution, error) {
	p, devices := l.run.Problem, l.run.Problem.Machine.NumDevices()
	x := &distribution{heads: l.decoder.Heads(), units: s.Units.NumUnits()}
	if from.Logits != nil {
		x.take(curriculum.WarmStart(from, x.heads, s, l.seconds, devices))
	} else {
		x.prior()
	}
	if p.Decides(plan.Place) {
		if s.Near != nil && from.Logits == nil {
			for u, d := range curriculum.Majority(s.Units, s.Near, l.seconds, devices) {
				x.of[u][d] += float64(curriculum.StartBias(devices))
			}
		}
		allowed, err := rollout.Allowed(p, s.Units)
		if err != nil {
			return nil, err
		}
		for k, ok := range allowed {
			if !ok {
				x.of[k/devices][k%devices] = math.Inf(-1)
			}
		}
	}
	for _, c := range x.of {
		nn.SoftmaxRow(c, c)
	}
	return x, nil
}

// take sets the logits to these.
func (x *distribution) take(logits curriculum.Logits) {
	for t, h := range x.heads {
		for _, row := range logits[t] {
			for lo := 0; lo < len(row); lo += h.Levels {
				choice := make([]float64, h.Levels)
				for a := range choice {
					choice[a] = float64(row[lo+a])
				}
				x.of = append(x.of, choice)
			}
		}
	}
}

// prior sets the logits to 0, and to middleBias for the middle levels of what is
// decided beside the devices.
func (x *distribution) prior() {
	for _, h := range x.heads {
		for range x.units * h.Kinds {
			choice := make([]float64, h.Levels)
			if h.Task != plan.Place {
				choice[h.Levels/2] = middleBias
			}
			x.of = append(x.of, choice)
		}
	}
}

// sample draws a decision.
func (x *distribution) sample(r *rand.Rand) []int32 {
	action := make([]int32, len(x.of))
	for i, c := range x.of {
		action[i] = nn.Draw(c, r)
	}
	return action
}

// update is that of the cross-entropy method: it moves the probabilities a part mix of the
// way to how often the elites, best, choose a level.
func (x *distribution) update(best []Sample, mix float64) {
	for i, c := range x.of {
		sum := 0.0
		for a, q := range c {
			if q == 0 {
				continue
			}
			n := 0.0
			for _, s := range best {
				if int(s.Action[i]) == a {
					n++
				}
			}
			c[a] = max((1-mix)*q+mix*n/float64(len(best)), LeastProbability)
			sum += c[a]
		}
		for a := range c {
			c[a] /= sum
		}
	}
}

// logits returns the logarithms of the probabilities.
func (x *distribution) logits() (all curriculum.Logits) {
	at := 0
	for _, h := range x.heads {
		rows := make([][]float32, x.units)
		for u := range rows {
			for range h.Kinds {
				for _, q := range x.of[at] {
					rows[u] = append(rows[u], float32(math.Log(q)))
				}
				at++
			}
		}
		all = append(all, rows)
	}
	return all
}
