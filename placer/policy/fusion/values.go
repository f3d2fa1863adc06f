package fusion

import (
	"math"
	"slices"

	"placer/plan"
)

// A value is, by a share of ownKernels, the seconds that the kernels of a class's ops
// save, and otherwise the whole step. A round's samples count by forget less in each
// later round. Probabilities by value have a temperature that falls from hot to cold, as
// parts of the step time, over the budget.
const (
	ownKernels = 0.75
	forget     = 0.1
	hot, cold  = 1e-3, 2e-4
)

// Levels are chosen by value alone in the share warm of the budget. From then on a
// share of explore of the probabilities, finer times as much behind the first stage, is
// exploration: by value for a share of guided, else of any level. Over the last share
// exploreEnd of the budget it falls to 0.
const (
	warm       = 0.2
	explore    = 0.03
	finer      = 0.3
	guided     = 0.8
	exploreEnd = 0.2
)

// values are what the levels of each class seem to be worth by the samples of late.
type values struct {
	learner *learner
	classes *classes
	sum     [][]float64 // [C][levels] seconds above the mean of the round
	count   [][]float64 // [C][levels] samples
	byValue [][]float64 // [C][levels] probabilities that follow from these
	cost    [][]float64 // [K][C] scratch
	explore float64
}

// table returns zeros, [classes][levels].
func table(classes int) [][]float64 {
	t := make([][]float64, classes)
	for c := range t {
		t[c] = make([]float64, levels)
	}
	return t
}

// byValues returns the teacher that explores so much.
func byValues(explore float64) func(*learner, *classes) teacher {
	return func(l *learner, x *classes) teacher { return newValues(l, x, explore) }
}

func newValues(l *learner, x *classes, explore float64) *values {
	n := len(x.ops)
	v := &values{learner: l, classes: x, sum: table(n), count: table(n), byValue: table(n), explore: explore}
	for range l.samples {
		v.cost = append(v.cost, make([]float64, n))
	}
	return v
}

// learn is as teacher says.
func (v *values) learn(actions [][]int32, scores []plan.Score, best *plan.Decision, step float64) {
	l := v.learner
	l.run.Each(len(actions), func(k, j int) {
		v.attribute(l.price(k, v.classes, actions[j]), v.cost[j])
	})
	v.add(actions, scores, step*hot*math.Pow(cold/hot, l.run.Spent()))
	n := len(v.classes.of)
	l.kernels[0].Critical(&plan.Plan{Decision: *best}, l.weight, make([]bool, n), make([]float64, n))
}

// add takes in a round of samples whose kernels cost v.cost.
func (v *values) add(actions [][]int32, scores []plan.Score, temperature float64) {
	n, mean := float64(len(actions)), 0.0
	for _, s := range scores {
		mean += s.Value / n
	}
	for c := range v.sum {
		own := 0.0
		for j := range actions {
			own += v.cost[j][c] / n
		}
		for a := range levels {
			v.sum[c][a] *= 1 - forget
			v.count[c][a] *= 1 - forget
		}
		for j, action := range actions {
			v.sum[c][action[c]] += (1-ownKernels)*(scores[j].Value-mean) + ownKernels*(v.cost[j][c]-own)
			v.count[c][action[c]]++
		}
		v.follow(c, temperature)
	}
}

// attribute writes into cost, [C], the seconds that the kernels of each class's ops
// take more than these ops alone, those of each device by its weight.
func (v *values) attribute(x priced, cost []float64) {
	device, seconds := v.learner.run.Problem.Device, v.learner.run.Problem.Evaluator.OpSeconds
	saved := make([]float64, len(x.takes))
	for k, s := range x.takes {
		saved[k] = -s
	}
	for i, k := range x.kernel {
		saved[k] += seconds(int(device[i]))[i]
	}
	seen := make([]int32, len(x.takes)) // the last class that counted a kernel, + 1
	for c, ops := range v.classes.ops {
		cost[c] = 0
		for _, i := range ops {
			if k := x.kernel[i]; seen[k] != int32(c)+1 {
				seen[k] = int32(c) + 1
				cost[c] -= saved[k] * v.learner.weight[device[i]]
			}
		}
	}
}

// follow writes the probabilities of class c's levels by their mean seconds, sum / (count + 1),
// which draws those that were hardly tried to the mean of all.
func (v *values) follow(c int, temperature float64) {
	probability := v.byValue[c]
	for a := range probability {
		probability[a] = v.sum[c][a] / (v.count[c][a] + 1)
	}
	total := boltzmann(probability, temperature)
	for a := range probability {
		probability[a] /= total
	}
}

// boltzmann turns the seconds of levels, [A], into their weights at a temperature in
// seconds, exp((least - x) / temperature), and returns the sum of these.
func boltzmann(x []float64, temperature float64) (total float64) {
	least := slices.Min(x)
	for a, seconds := range x {
		x[a] = math.Exp((least - seconds) / temperature)
		total += x[a]
	}
	return total
}

// mix is as teacher says.
func (v *values) mix() float64 { return v.learner.Mix }

// adjust is as teacher says.
func (v *values) adjust(c int, probability []float64, spent float64) {
	if spent < warm {
		copy(probability, v.byValue[c])
		return
	}
	u := v.explore * min(1, (1-spent)/exploreEnd)
	for a := range probability {
		probability[a] = (1-u)*probability[a] + u*((1-guided)/levels+guided*v.byValue[c][a])
	}
}
