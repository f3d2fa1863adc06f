package nn

import (
	"fmt"
)

// CrossEntropy is the imitation loss: the mean of -log softmax(logits)[label]
// over the rows that have a label. Logits are output 0, [R,A]. Policies here learn by
// ppo.Objective; this one has a known answer, by which tests compare networks and engines.
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
