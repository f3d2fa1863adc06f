package cem

import (
	"math"
	"math/rand/v2"

	"placer/nn"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// leastChance keeps the logarithm of a chance finite. A level that comes to it is hardly ever
// drawn again.
const leastChance = 1e-9

// middlePrior is by how much the logit of the middle level of schedules and fusion
// begins above the others'. What is chosen beside a placement is to blur its worth
// little.
const middlePrior = 4

// chances are those of the levels of each choice of a decision.
type chances struct {
	heads []rollout.Head
	units int
	of    [][]float64 // [choices][levels], in the order of a decision; 0: not allowed
}

// start returns the chances that stage s begins with: what was learnt in the stage
// before, softened, or else the prior.
func (l *learner) start(s curriculum.Stage, from curriculum.Learnt) (*chances, error) {
	p, devices := l.run.Problem, l.run.Problem.Machine.NumDevices()
	x := &chances{heads: l.decoder.Heads(), units: s.Units.NumUnits()}
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

// take begins with these logits.
func (x *chances) take(logits curriculum.Logits) {
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

// prior begins with logits of 0, and of middlePrior for the middle levels of what is
// decided beside the devices.
func (x *chances) prior() {
	for _, h := range x.heads {
		for range x.units * h.Kinds {
			choice := make([]float64, h.Levels)
			if h.Task != plan.Place {
				choice[h.Levels/2] = middlePrior
			}
			x.of = append(x.of, choice)
		}
	}
}

// sample draws a decision.
func (x *chances) sample(r *rand.Rand) []int32 {
	action := make([]int32, len(x.of))
	for i, c := range x.of {
		action[i] = nn.Draw(c, r)
	}
	return action
}

// follow moves the chances a part mix of the way to how often the samples of best
// choose a level.
func (x *chances) follow(best []Sample, mix float64) {
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
			c[a] = max((1-mix)*q+mix*n/float64(len(best)), leastChance)
			sum += c[a]
		}
		for a := range c {
			c[a] /= sum
		}
	}
}

// logits returns the logarithms of the chances.
func (x *chances) logits() (all curriculum.Logits) {
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
