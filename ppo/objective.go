package ppo

import (
	"fmt"
	"math"

	"placer/nn"
)

// Objective is the loss of K sampled decisions, the negative of
//
//	mean over k, n of min(ρ A, clip(ρ, 1-ε, 1+ε) A) + entropy bonus - value loss
//
// (arXiv:1707.06347v2, Eq. 7 and 9) with ρ the ratio of the probabilities, now
// and when sampled, of sample k's choice at node n. Output 0 of the graph are the
// logits, [N,A] if all samples share them or [KN,A] with a block of rows for each
// sample; output 1 the values, [G,1] or [KG,1] for G stacked graphs.
//
// Outputs from 2 on are the logits of further tasks, each with rows and choices
// of its own. A decision then holds the choices of all tasks, one task after the
// other, M in all: its log probability is the sum over the tasks, and so are the
// mean and the entropy bonus.
type Objective struct {
	ClipEps   float64 // ε
	Entropy   float64 // factor of the mean entropy per node
	ValueCost float64 // factor of the mean squared error of the values

	Actions [][]int32   // [K][M]; M = N with one task
	LogProb [][]float32 // [K][M] when sampled
	// Advantage holds a number for each sample, [K][1], or each choice, [K][M].
	Advantage [][]float32
	Return    []float32 // [KG] targets of the values; not read if ValueCost is 0

	// Stats is set by Loss.
	Stats Stats
}

// Stats describe how far the policy has moved from the one that sampled.
type Stats struct {
	Loss         float64
	Entropy      float64 // mean per node, in nats; summed over tasks, as are the next
	KL1          float64 // estimate of KL(old, new) per node: mean of log old - log new
	KL3          float64 // the same by the mean of ρ - 1 - log ρ, which is never negative
	ClipFraction float64 // share of ratios outside [1-ε, 1+ε]
	ValueLoss    float64
}

// Loss is as nn.Objective says.
func (o *Objective) Loss(c *nn.Context, outputs, gradients []nn.Mat) float64 {
	var tasks []int // outputs that are logits
	for i := range outputs {
		if i != 1 {
			tasks = append(tasks, i)
		}
	}
	copies := o.check(outputs, tasks)
	var s Stats
	at := 0 // of the task's first choice in a decision
	for _, i := range tasks {
		n := outputs[i].N / copies
		s.add(o.task(c, outputs[i], gradients[i], at, n))
		at += n
	}
	if o.ValueCost != 0 {
		s.ValueLoss = o.value(outputs[1], gradients[1], len(o.Actions))
		s.Loss += o.ValueCost * s.ValueLoss
	}
	o.Stats = s
	return s.Loss
}

// task adds to dx the gradient for the task with logits x, whose n choices begin
// at position at of a decision.
func (o *Objective) task(c *nn.Context, x, dx nn.Mat, at, n int) (s Stats) {
	samples := len(o.Actions)
	shared := x.N == n
	per := 1 // samples for each row
	if shared {
		per = samples
	}
	f := 1 / float64(samples*n)    // of a sample's term
	fe := o.Entropy / float64(x.N) // of a row's entropy
	var parts [nn.Pieces]Stats     // summed in order, whatever the workers
	c.Rows(x.N, func(_, piece int, _ bool, lo, hi int) {
		s := &parts[piece]
		p, d := make([]float64, x.D), make([]float64, x.D)
		for r := lo; r < hi; r++ {
			row := x.Row(r)
			lz := nn.SoftmaxRow(p, row)
			entropy := 0.0
			for i, q := range p {
				if q > 0 {
					entropy -= q * (float64(row[i]) - lz)
				}
			}
			s.Entropy += entropy
			for i, q := range p { // of -fe entropy
				d[i] = 0
				if q > 0 {
					d[i] = fe * q * (float64(row[i]) - lz + entropy)
				}
			}
			total := 0.0
			for j := range per {
				k, v := j, at+r
				if !shared {
					k, v = r/n, at+r%n
				}
				a := o.Actions[k][v]
				adv := float64(o.Advantage[k][0])
				if len(o.Advantage[k]) > 1 {
					adv = float64(o.Advantage[k][v])
				}
				slope := s.term(float64(row[a])-lz-float64(o.LogProb[k][v]), adv, o.ClipEps)
				d[a] -= f * slope
				total += f * slope
			}
			g := dx.Row(r)
			for i, q := range p {
				g[i] += float32(d[i] + total*q)
			}
		}
	})
	for _, q := range parts {
		s.Loss += q.Loss
		s.Entropy += q.Entropy
		s.KL1 += q.KL1
		s.KL3 += q.KL3
		s.ClipFraction += q.ClipFraction
	}
	return o.mean(s, x.N, samples*n)
}

// mean turns the sums over one task's rows and choices into its Stats.
func (o *Objective) mean(s Stats, rows, choices int) Stats {
	f := 1 / float64(choices)
	s.Loss *= -f
	s.Entropy /= float64(rows)
	s.KL1 *= f
	s.KL3 *= f
	s.ClipFraction *= f
	s.Loss -= o.Entropy * s.Entropy
	return s
}

// Copies is for those who compute Loss elsewhere: it returns how many blocks of
// rows each task's logits hold, 1 or K, and panics as Loss does if samples and
// outputs, of which only the shapes are read, disagree.
func (o *Objective) Copies(outputs []nn.Mat) int {
	var tasks []int
	for i := range outputs {
		if i != 1 {
			tasks = append(tasks, i)
		}
	}
	return o.check(outputs, tasks)
}

// Combine is the rest of Loss where the gradients of the logits were computed
// elsewhere. sums[i] holds, for output i, sums over its rows and choices: of the
// clipped objectives (Loss), of entropies, of log old - log new (KL1), of the terms
// of KL3, of clipped ratios. Combine adds the values' gradient to dv.
func (o *Objective) Combine(outputs []nn.Mat, sums []Stats, values, dv nn.Mat) float64 {
	copies := o.Copies(outputs)
	var s Stats
	for i, x := range outputs {
		if i != 1 {
			s.add(o.mean(sums[i], x.N, len(o.Actions)*(x.N/copies)))
		}
	}
	if o.ValueCost != 0 {
		s.ValueLoss = o.value(values, dv, len(o.Actions))
		s.Loss += o.ValueCost * s.ValueLoss
	}
	o.Stats = s
	return s.Loss
}

// term adds one sample's choice with log ratio l to s and returns the derivative
// of its clipped objective with respect to the log probability.
func (s *Stats) term(l, advantage, eps float64) float64 {
	ratio := math.Exp(l)
	objective, slope := ratio*advantage, ratio*advantage
	clipped := min(max(ratio, 1-eps), 1+eps)
	if clipped*advantage < objective {
		objective, slope = clipped*advantage, 0
	}
	s.Loss += objective
	s.KL1 -= l
	s.KL3 += ratio - 1 - l
	if clipped != ratio {
		s.ClipFraction++
	}
	return slope
}

// value adds the gradient of the mean squared error of the values and returns
// that error.
func (o *Objective) value(v, dv nn.Mat, samples int) float64 {
	if len(o.Return) == 0 || len(o.Return)%v.N != 0 || len(o.Return)%samples != 0 {
		panic(fmt.Sprintf("ppo: %d returns of %d samples for values %s", len(o.Return), samples, v))
	}
	f, loss := 1/float64(len(o.Return)), 0.0
	for i, t := range o.Return {
		e := float64(v.V[i%v.N]) - float64(t)
		loss += f * e * e
		dv.V[i%v.N] += float32(o.ValueCost * 2 * f * e)
	}
	return loss
}

// check panics unless the samples agree with each other and with the logits, and
// returns how many blocks of rows the logits hold: 1, or K.
func (o *Objective) check(outputs []nn.Mat, tasks []int) (copies int) {
	k := len(o.Actions)
	if k == 0 || len(o.LogProb) != k || len(o.Advantage) != k {
		panic(fmt.Sprintf("ppo: %d samples with %d log probabilities and %d advantages", k, len(o.LogProb), len(o.Advantage)))
	}
	n := len(o.Actions[0])
	for i := range k {
		if a := len(o.Advantage[i]); len(o.Actions[i]) != n || len(o.LogProb[i]) != n || a != 1 && a != n {
			panic(fmt.Sprintf("ppo: sample %d has %d actions, %d log probabilities and %d advantages for %d choices", i, len(o.Actions[i]), len(o.LogProb[i]), a, n))
		}
	}
	rows, even := 0, true
	for _, i := range tasks {
		rows += outputs[i].N
		even = even && outputs[i].N%k == 0
	}
	switch {
	case rows == n:
		return 1
	case rows == k*n && even:
		return k
	}
	panic(fmt.Sprintf("ppo: %d rows of logits, the first %s, for %d samples of %d choices", rows, outputs[0], k, n))
}
