package device

import (
	"math"
	"slices"

	"placer/nn"
	"placer/ppo"
)

// objective computes o and writes the gradients of the outputs. PPO's has a
// kernel; others run on the host.
func (e *engine) objective(o nn.Objective) float64 {
	if p, ok := o.(*ppo.Objective); ok {
		return e.ppo(p)
	}
	e.fetch()
	if e.d.err != nil {
		return 0
	}
	var gradients []nn.Mat
	for _, x := range e.out {
		gradients = append(gradients, nn.NewMat(x.N, x.D))
	}
	loss := o.Loss(e.program.Context, e.out, gradients)
	for i, k := range e.program.Outputs {
		upload(e.d, e.grads[k], gradients[i].V)
		e.written[k] = true
	}
	return loss
}

// ppo computes the gradients of the logits on the device, those of the values,
// few, on the host.
func (e *engine) ppo(o *ppo.Objective) float64 {
	d, outputs := e.d, e.program.Outputs
	copies := o.Copies(e.out)
	choices, samples, per := len(o.Actions[0]), len(o.Actions), len(o.Advantage[0])
	for _, a := range o.Advantage {
		if len(a) != per { // Loss allows it; nothing makes them
			panic("policy: samples with advantages per choice and without")
		}
	}
	actions := d.scratch(keyActions, 4*samples*choices)
	upload(d, actions, slices.Concat(o.Actions...))
	logProb := d.scratch(keyLogProb, 4*samples*choices)
	upload(d, logProb, slices.Concat(o.LogProb...))
	advantage := d.scratch(keyAdvantage, 4*samples*per)
	upload(d, advantage, slices.Concat(o.Advantage...))

	sums, at := make([]ppo.Stats, len(outputs)), 0
	for i, k := range outputs {
		if i == 1 {
			continue
		}
		x := e.mat(k)
		n := x.n / copies
		stats := d.scratch(keyStats, 8*5*x.n)
		d.each(kPPO, x.n, uint64(x.Ptr), uint64(e.grads[k]), uint64(actions), uint64(logProb), uint64(advantage), uint64(stats),
			uint64(x.n), uint64(x.d), uint64(samples), uint64(n), uint64(at), uint64(choices), uint64(per), flag(copies == 1),
			math.Float64bits(o.ClipEps), math.Float64bits(1/float64(samples*n)), math.Float64bits(o.Entropy/float64(x.n)))
		e.written[k] = true
		s := d.dsum(stats, x.n, 5)
		sums[i] = ppo.Stats{Loss: s[0], Entropy: s[1], KL1: s[2], KL3: s[3], ClipFraction: s[4]}
		at += n
	}
	values := e.out[1]
	download(d, values.V, e.values[outputs[1]])
	d.sync()
	dv := nn.NewMat(values.N, values.D)
	if d.err != nil {
		return 0
	}
	loss := o.Combine(e.out, sums, values, dv)
	if o.ValueCost != 0 {
		upload(d, e.grads[outputs[1]], dv.V)
		e.written[outputs[1]] = true
	}
	return loss
}
