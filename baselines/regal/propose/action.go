package propose

import (
	"fmt"
	"math"
	"math/rand/v2"

	"placer/baselines/regal/brkga"
	"placer/nn"
)

// Space is REGAL's quantised actions (Paliwal et al., ICLR 2020, A.6): for each op a
// mean and a variance of a beta distribution for every device's affinity and for the
// scheduling priority, each one of a few levels. Letters: N ops, D devices, C logits
// of an op, K samples.
type Space struct {
	Devices     int
	PlaceLevels int // of affinities
	OrderLevels int // of scheduling priorities
}

// RunTime returns the levels of the paper's run-time agent: 2 and 16 (A.15).
func RunTime(devices int) Space { return Space{devices, 2, 16} }

// choices returns the number of choices of each of an op's 2(D+1) decisions: mean
// and variance for every device, then for the priority.
func (s Space) choices() (all []int) {
	for range 2 * s.Devices {
		all = append(all, s.PlaceLevels)
	}
	return append(all, s.OrderLevels, s.OrderLevels)
}

// Columns returns C.
func (s Space) Columns() (n int) {
	for _, c := range s.choices() {
		n += c
	}
	return n
}

// Decisions returns the number of decisions of an op, 2(D+1).
func (s Space) Decisions() int { return 2 * (s.Devices + 1) }

// Sample draws the decisions of n ops from logits, whose first n rows of C are
// theirs: [n*Decisions]. It is an error if they are not finite.
func (s Space) Sample(logits nn.Mat, n int, r *rand.Rand) ([]uint8, error) {
	return s.Chances(logits, n).Draw(r)
}

// Chances are the probabilities of all decisions of n ops.
type Chances struct {
	choices []int
	p       []float64 // [n*C]
	n       int
}

// Chances returns what logits say; Draw then samples as Sample does.
func (s Space) Chances(logits nn.Mat, n int) *Chances {
	s.check(logits, n)
	x := &Chances{choices: s.choices(), p: make([]float64, n*logits.D), n: n}
	for i := range n {
		row, p := logits.Row(i), x.p[i*logits.D:]
		for _, c := range x.choices {
			nn.SoftmaxRow(p[:c], row[:c])
			row, p = row[c:], p[c:]
		}
	}
	return x
}

// Draw draws all decisions, [n*Decisions]. It is an error if the logits were not finite.
func (x *Chances) Draw(r *rand.Rand) ([]uint8, error) {
	all := make([]uint8, 0, x.n*len(x.choices))
	p := x.p
	for i := range x.n {
		for _, c := range x.choices {
			k := nn.Draw(p[:c], r)
			if k < 0 {
				return nil, fmt.Errorf("propose: the logits of op %d are not finite", i)
			}
			all = append(all, uint8(k))
			p = p[c:]
		}
	}
	return all, nil
}

func (s Space) check(logits nn.Mat, n int) {
	if logits.D != s.Columns() || logits.N < n {
		panic(fmt.Sprintf("propose: logits %s for %d ops of %d columns", logits, n, s.Columns()))
	}
}

// Distributions returns what the decisions of all ops propose: an affinity's key
// for each op and device, then the ops' priorities; transfers stay uniform.
func (s Space) Distributions(decisions []uint8) brkga.Beta {
	per := s.Decisions()
	n := len(decisions) / per
	keys := make([]brkga.Shape, n*(s.Devices+1))
	for i := range n {
		a := decisions[i*per:]
		for d := range s.Devices {
			keys[i*s.Devices+d] = brkga.Quantised(int(a[2*d]), int(a[2*d+1]), s.PlaceLevels)
		}
		keys[n*s.Devices+i] = brkga.Quantised(int(a[per-2]), int(a[per-1]), s.OrderLevels)
	}
	return brkga.Beta{Keys: keys}
}

// Reinforce is the loss of K sampled decisions of n ops (Williams, 1992):
//
//	-1/(K n) Σ_k advantage_k Σ_i log p(a_ki) - entropy bonus
//
// Output 0 of the graph are the logits; rows from n on are padding.
type Reinforce struct {
	Space     Space
	Ops       int       // n
	Decisions [][]uint8 // [K][n*Decisions]
	Advantage []float64 // [K]
	Entropy   float64   // factor of the mean entropy of a decision
}

// Loss is as nn.Objective says.
func (o *Reinforce) Loss(_ *nn.Context, outputs, gradients []nn.Mat) (loss float64) {
	logits, grad := outputs[0], gradients[0]
	o.Space.check(logits, o.Ops)
	choices := o.Space.choices()
	p := make([]float64, max(o.Space.PlaceLevels, o.Space.OrderLevels))
	scale := 1 / float64(o.Ops)
	for i := range o.Ops {
		at := 0
		for j, c := range choices {
			x, dx := logits.Row(i)[at:at+c], grad.Row(i)[at:at+c]
			norm := nn.SoftmaxRow(p[:c], x)
			entropy := 0.0
			for k := range c {
				entropy -= p[k] * (float64(x[k]) - norm)
			}
			loss -= o.Entropy * entropy * scale
			for k := range c {
				dx[k] += float32(o.Entropy * scale * p[k] * (float64(x[k]) - norm + entropy))
			}
			for s, a := range o.Decisions {
				f := o.Advantage[s] * scale / float64(len(o.Decisions))
				chosen := int(a[i*len(choices)+j])
				loss -= f * (float64(x[chosen]) - norm)
				for k := range c {
					dx[k] += float32(f * p[k])
				}
				dx[chosen] -= float32(f)
			}
			at += c
		}
	}
	if math.IsNaN(loss) {
		panic("propose: loss is not a number")
	}
	return loss
}
