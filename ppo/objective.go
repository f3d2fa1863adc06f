package ppo

import (
	"fmt"

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
	Entropy      float64 // mean per node, in nats; summed over tasks, as are the next three
	KL1          float64 // estimate of KL(old, new) per node: mean of log old - log new
	KL3          float64 // the same by the mean of ρ - 1 - log ρ, which is never negative
	ClipFraction float64 // share of ratios outside [1-ε, 1+ε]
	ValueLoss    float64
}

// valueOutput is the output that holds the values; the others are logits.
const valueOutput = 1

// Loss is as nn.Objective says.
func (o *Objective) Loss(c *nn.Context, outputs, gradients []nn.Mat) float64 {
	copies := o.Copies(outputs)
	sums := make([]Stats, len(outputs))
	first := 0 // choice of the task in a decision
	for i, x := range outputs {
		if i == valueOutput {
			continue
		}
		t := task{Objective: o, logits: x, gradient: gradients[i], first: first, choices: x.N / copies}
		sums[i] = t.loss(c)
		first += t.choices
	}
	var values, dv nn.Mat
	if len(outputs) > valueOutput {
		values, dv = outputs[valueOutput], gradients[valueOutput]
	}
	return o.Combine(outputs, sums, values, dv)
}

// Copies is for those who compute Loss elsewhere: it returns how many blocks of
// rows each task's logits hold, 1 or K, and panics as Loss does if samples and
// outputs, of which only the shapes are read, disagree.
func (o *Objective) Copies(outputs []nn.Mat) int {
	k, m := o.samples()
	rows, even := 0, true
	for i, x := range outputs {
		if i != valueOutput {
			rows += x.N
			even = even && x.N%k == 0
		}
	}
	switch {
	case rows == m:
		return 1
	case rows == k*m && even:
		return k
	}
	panic(fmt.Sprintf("ppo: %d rows of logits, the first %s, for %d samples of %d choices", rows, outputs[0], k, m))
}

// samples returns K and M. It panics unless the samples agree with each other.
func (o *Objective) samples() (k, m int) {
	k = len(o.Actions)
	if k == 0 || len(o.LogProb) != k || len(o.Advantage) != k {
		panic(fmt.Sprintf("ppo: %d samples with %d log probabilities and %d advantages", k, len(o.LogProb), len(o.Advantage)))
	}
	m = len(o.Actions[0])
	for i := range k {
		if a := len(o.Advantage[i]); len(o.Actions[i]) != m || len(o.LogProb[i]) != m || a != 1 && a != m {
			panic(fmt.Sprintf("ppo: sample %d has %d actions, %d log probabilities and %d advantages for %d choices", i, len(o.Actions[i]), len(o.LogProb[i]), a, m))
		}
	}
	return k, m
}

// Combine is the rest of Loss where the gradients of the logits are there. sums[i]
// holds, for output i, sums over its rows and choices: of the clipped objectives (Loss),
// of entropies, of log old - log new (KL1), of the terms of KL3, of clipped ratios.
// Combine adds the values' gradient to dv; neither is read if ValueCost is 0.
func (o *Objective) Combine(outputs []nn.Mat, sums []Stats, values, dv nn.Mat) float64 {
	copies := o.Copies(outputs)
	var s Stats
	for i, x := range outputs {
		if i != valueOutput {
			s.add(o.mean(sums[i], x.N, len(o.Actions)*(x.N/copies)))
		}
	}
	if o.ValueCost != 0 {
		s.ValueLoss = o.value(values, dv)
		s.Loss += o.ValueCost * s.ValueLoss
	}
	o.Stats = s
	return s.Loss
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

// value adds the gradient of the mean squared error of the values to dv and returns
// that error.
func (o *Objective) value(v, dv nn.Mat) float64 {
	if len(o.Return) == 0 || len(o.Return)%v.N != 0 || len(o.Return)%len(o.Actions) != 0 {
		panic(fmt.Sprintf("ppo: %d returns of %d samples for values %s", len(o.Return), len(o.Actions), v))
	}
	f, loss := 1/float64(len(o.Return)), 0.0
	for i, t := range o.Return {
		e := float64(v.V[i%v.N]) - float64(t)
		loss += f * e * e
		dv.V[i%v.N] += float32(o.ValueCost * 2 * f * e)
	}
	return loss
}
