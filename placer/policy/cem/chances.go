package cem

import (
	"math"
	"math/rand/v2"

	"placer/nn"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// leastChance keeps the logarithm of a chance finite. A level that comes to it is
// given up.
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

// start returns the chances that stage s begins with: what was learnt in stage from,
// softened, or else the prior.
func (l *learner) start(s, from curriculum.Stage, learnt curriculum.Logits) (*chances, error) {
	p, devices := l.run.Problem, l.run.Problem.Machine.NumDevices()
	x := &chances{heads: l.decoder.Heads(), units: s.Units.NumUnits()}
	if learnt != nil {
		learnt = curriculum.WarmStart(learnt, x.heads, from, s, l.seconds, devices)
	}
	for t, h := range x.heads {
		for k := range x.units * h.Kinds {
			logits := make([]float64, h.Levels)
			switch {
			case learnt != nil:
				for a := range logits {
					logits[a] = float64(learnt[t][k/h.Kinds][k%h.Kinds*h.Levels+a])
				}
			case h.Task != plan.Place:
				logits[h.Levels/2] = middlePrior
			}
			x.of = append(x.of, logits)
		}
	}
	if p.Decides(plan.Place) {
		if s.Near != nil && learnt == nil {
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
