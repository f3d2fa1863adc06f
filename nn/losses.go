package nn

import (
	"fmt"
	"math"
)

// SoftmaxRow writes the softmax of x into p, which has its length, and returns
// the logarithm of the denominator, so that log p[i] = x[i] - the result.
// Masked choices get exactly 0.
func SoftmaxRow(p []float64, x []float32) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, float64(v))
	}
	sum := 0.0
	for i, v := range x {
		p[i] = math.Exp(float64(v) - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return top + math.Log(sum)
}

// CrossEntropy is the imitation loss: the mean of -log softmax(logits)[label]
// over the rows that have a label. Logits are output 0, [R,A].
type CrossEntropy struct {
	Labels []int32 // [R], or [n] for R/n stacked copies; -1 leaves the row out
	// Weight is the objective's factor; 0 means 1.
	Weight float64
	// Right and Counted are set by Loss: rows whose largest logit is the label's,
	// and rows with a label.
	Right, Counted int
}

// Loss is as Objective says.
func (o *CrossEntropy) Loss(_ *Context, outputs, gradients []Mat) float64 {
	x, dx, n := outputs[0], gradients[0], len(o.Labels)
	if n == 0 || x.N%n != 0 {
		panic(fmt.Sprintf("nn: %d labels for logits %s", n, x))
	}
	o.Right, o.Counted = 0, 0
	for r := range x.N {
		if o.Labels[r%n] >= 0 {
			o.Counted++
		}
	}
	if o.Counted == 0 {
		return 0
	}
	weight := o.Weight
	if weight == 0 {
		weight = 1
	}
	f := weight / float64(o.Counted)
	p := make([]float64, x.D)
	loss := 0.0
	for r := range x.N {
		a := o.Labels[r%n]
		if a < 0 {
			continue
		}
		row, d := x.Row(r), dx.Row(r)
		loss += f * (SoftmaxRow(p, row) - float64(row[a]))
		best := 0
		for i, v := range row {
			if v > row[best] {
				best = i
			}
			d[i] += float32(f * p[i])
		}
		d[a] -= float32(f)
		if best == int(a) {
			o.Right++
		}
	}
	return loss
}

// SquaredError is the mean of (v - target)² over the values v, output 1, [G,1],
// times Weight (0 means 1).
type SquaredError struct {
	Target []float32 // [G]
	Weight float64
}

// Loss is as Objective says.
func (o *SquaredError) Loss(_ *Context, outputs, gradients []Mat) float64 {
	v, dv := outputs[1], gradients[1]
	v.want("squared error", len(o.Target), 1)
	f := o.Weight
	if f == 0 {
		f = 1
	}
	f /= float64(v.N)
	loss := 0.0
	for i, t := range o.Target {
		e := float64(v.V[i]) - float64(t)
		loss += f * e * e
		dv.V[i] += float32(2 * f * e)
	}
	return loss
}

// Objectives is the sum of several objectives.
type Objectives []Objective

// Loss is as Objective says.
func (o Objectives) Loss(c *Context, outputs, gradients []Mat) (sum float64) {
	for _, l := range o {
		sum += l.Loss(c, outputs, gradients)
	}
	return sum
}
