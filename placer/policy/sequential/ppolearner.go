package sequential

import (
	"context"
	"fmt"
	"math"

	"placer/nn"
	"placer/nn/vec"
)

// ppoLearner learns by PPO through the network and a residual embedding of each unit:
// a column per device and one per tied feature, which the decoder adds to a device's
// score as it is (logits). An encoder keeps its weights, and what it says of a unit is the
// same throughout: fine-tuned with the rest it ends in longer steps (adr/0107). A step's placements give PPO's clipped objective; the elite
// gives self-imitation (Oh and others, ICML 2018), the likelihood of what was better than
// the step expected. One gradient, of the scores, moves both.
//
// It departs from the papers in three things: samples are drawn at other temperatures and with
// perturbations (proposal), so that the ratio is to what the policy itself would do, not to what
// they were drawn from; rewards are times, not their roots, as they become deviations; the elite
// is neither clipped nor weighed by how much better it is.
type ppoLearner struct {
	config   PPOConfig
	net      *network
	adam     *nn.Adam
	rollouts *rollouts
	logp     []float32 // [T*K] of the choices before the first step of the gradient
	advance  []float32 // [K] advantages; elite first
}

// newPPOLearner returns one of p, which learns.
func newPPOLearner(p *Policy, c PPOConfig) *ppoLearner {
	return &ppoLearner{config: c, net: p.net, adam: nn.NewAdam(nn.DefaultAdam()), rollouts: &rollouts{pass: &pass{n: p.net, fixedEncoder: true}, withFeatures: true}}
}

// mostRows bounds the decisions times devices that are learned from at once: 400 MB of
// features.
const mostRows = 1 << 21

// room reports more decisions than two placements can be learned from at once.
func (*ppoLearner) room(s *instance) error {
	if rows := s.decisions * s.d; rows > mostRows/2 {
		return fmt.Errorf("fine-tuning by PPO: %d decisions on %d devices are more than it has memory for, %d in all: fine-tune by the cross-entropy method", s.decisions, s.d, mostRows/2)
	}
	return nil
}

// fit makes the placements again, with what the gradient needs, and takes the steps.
func (x *ppoLearner) fit(ctx context.Context, r *tuning, sampled []*elite, steps int) error {
	l, c := r.logits, x.config
	x.rollouts.stopped = r.stopped(ctx)
	most := mostRows / max(1, len(l.order)*l.s.d)
	good := r.elite[:min(len(r.elite), most/2)]
	all := append(good[:len(good):len(good)], spaced(sampled, min(c.PPOSamples, most-len(good)))...)
	if len(all) == 0 || len(l.order) == 0 {
		return nil
	}
	x.replay(r, all)
	if x.rollouts.done() {
		return nil
	}
	x.weigh(l, all, len(good))
	epochs := max(1, (steps*c.Epochs+r.pace.fits-1)/r.pace.fits)
	rate := float32(r.pace.rate) * float32(steps) / float32(epochs)
	for range epochs {
		x.gradient(l, len(good))
		if x.rollouts.done() {
			return nil
		}
		vec.Axpy(l.free, l.dFree, rate)
		vec.Axpy(l.tied, l.dTied, rate*float32(r.pace.TiedRate))
		if _, err := x.adam.Step(x.net.params, c.NetworkRate); err != nil {
			return err
		}
	}
	for _, w := range r.workers {
		w.rollouts.on(l.s)
	}
	return nil
}

// spaced returns n of all, evenly.
func spaced(all []*elite, n int) []*elite {
	if len(all) <= n {
		return all
	}
	out := make([]*elite, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}

// replay records the placements of all as the level's decisions.
func (x *ppoLearner) replay(r *tuning, all []*elite) {
	e, l := x.rollouts, r.logits
	e.on(l.s)
	priors := make([]heuristic, len(all))
	names := make([]deviceNames, len(all))
	for k := range all {
		priors[k], names[k] = r.pace.prior, newDeviceNames(l.s)
	}
	e.roll(priors, rolling{record: true, choose: func(k int, u int32, _ []float32, ok []bool) int32 {
		to := names[k].of(int32(all[k].Cells[l.of[u]]), e.states[k].number)
		ok[to] = true
		return to
	}})
}

// weigh sets the advantages: of the elite, the first good of all, 1; of the others their
// deviation from these others' mean reward, in standard deviations.
func (x *ppoLearner) weigh(l *logits, all []*elite, good int) {
	x.advance = resized(x.advance, len(all))
	for k, y := range all {
		x.advance[k] = 1
		if k >= good {
			x.advance[k] = -float32(relative(y.score(), l.s, all[0].Seconds))
		}
	}
	if n := len(all) - good; n > 0 {
		advantages(x.advance[good:], n)
	}
	x.logp = x.logp[:0]
}

// gradient collects the gradient of the network's weights and of the embeddings.
func (x *ppoLearner) gradient(l *logits, good int) {
	e, d, n := x.rollouts, x.rollouts.d, len(tied)
	clear(l.dFree)
	clear(l.dTied)
	first := len(x.logp) == 0
	x.logp = resized(x.logp, len(e.of))
	z, p, features := make([]float32, d), make([]float32, d), make([]float32, d*n)
	decisions := float32(len(e.of) / e.k)
	e.backpropagate(func(row int, scores []float32, ok []bool, grad []float32) {
		k, u, chosen := row%e.k, e.of[row], e.chosen[row]
		e.tiedOf(row, features)
		l.sum(u, scores, features, z)
		softmax(z, ok, p)
		logp := logSoftmaxAt(z, ok, chosen)
		if first {
			x.logp[row] = logp
		}
		g := x.advance[k] / float32(max(1, good))
		if k >= good {
			a, ratio := x.advance[k], math.Exp(float64(logp-x.logp[row]))
			g = a * float32(ratio) / float32(e.k-good)
			if clips(a, ratio, x.config.Clip) {
				g = 0
			}
		}
		p[chosen] -= 1
		free, weights := l.freeOf(l.dFree, u), l.tiedOf(l.dTied, u)
		for i, q := range p {
			grad[i] = 0
			if ok[i] {
				grad[i] = g * q / decisions
				free[i] -= g * q
				vec.Axpy(weights, l.tiedOf(features, int32(i)), -g*q)
			}
		}
	})
}
