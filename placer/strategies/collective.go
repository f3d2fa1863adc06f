package strategies

import (
	"math"

	"placer/graph/strategy"
	"placer/hw"
	"placer/roofline"
	"placer/units"
)

// short reports whether c, of a step on mesh m, is one op rather than a ring on links: by NCCL's
// model where links say what they are of, else where LL or a one-shot is quicker.
func (j *Judge) short(m strategy.Mesh, c strategy.Collective) (bool, error) {
	w, err := j.times(m, c)
	return w.one <= w.ring, err
}

// collectiveSeconds returns how long c takes when all groups of a stage run one at once, by the
// quickest way there is.
func (j *Judge) collectiveSeconds(m strategy.Mesh, c strategy.Collective) (float64, error) {
	w, err := j.times(m, c)
	return min(w.one, w.ring), err
}

// times are the seconds of a collective, +Inf where there is no such way.
type times struct {
	one  float64 // as an op of every rank, which holds no links
	ring float64 // as a ring on links, simulated
}

// times returns how long c takes when all groups of a stage run one at once.
func (j *Judge) times(m strategy.Mesh, c strategy.Collective) (w times, err error) {
	key := ringKey{m, c}
	if w, ok := j.known[key]; ok {
		return w, nil
	}
	if c.Ranks == 1 {
		return times{float64(roofline.InPlace), math.Inf(1)}, nil
	}
	w = times{math.Inf(1), math.Inf(1)}
	f, known := j.fabricOf(m, c)
	if known {
		w.one = f.nccl(c)
	}
	if known && f.hosts == 1 || !known && j.fold {
		w.one = min(w.one, j.oneShotSeconds(m.Groups(c), c))
	}
	if !known && j.fold {
		w.one = min(w.one, j.flaggedSeconds(c))
	}
	if !known || math.IsInf(w.one, 1) {
		w.ring, err = j.ringSeconds(m, c)
	}
	if err == nil {
		j.known[key] = w
	}
	return w, err
}

// flaggedSeconds returns how long c takes as a ring in NCCL's protocol LL where all pairs of ranks are
// alike and links do not say what they are of: with the latency of a send in front, hops as over
// PCIe. +Inf where there is no NCCL.
func (j *Judge) flaggedSeconds(c strategy.Collective) float64 {
	latency, bandwidth := j.Machine.Transfer(0, 1)
	f := fabric{ranks: c.Ranks, hosts: 1, arch: capability(j.Machine.Devices[0].Arch), medium: hw.PCIe, bus: float64(bandwidth)}
	if f.arch == 0 {
		return math.Inf(1)
	}
	return float64(latency) + f.ringBy(ll, c)
}

// ringSeconds returns how long the rings of c take when all groups of a stage run one at
// once.
func (j *Judge) ringSeconds(m strategy.Mesh, c strategy.Collective) (float64, error) {
	x, err := strategy.Rings(c, m.Groups(c))
	if err != nil {
		return 0, err
	}
	s, d, err := j.Simulator(x)
	if err != nil {
		return 0, err
	}
	return s.Evaluate(d).Value, nil
}

// sent adds up what the ranks of x send in collectives that an op of each stands for.
func sent(x *strategy.Step) (b units.Bytes) {
	if x.Folded { // one stands for those of all groups of its stage
		for _, c := range x.Collectives {
			ranks := x.Strategy.Data * x.Strategy.Tensor
			switch c.Axis {
			case strategy.StageAxis:
				ranks *= c.Ranks
			case strategy.NormAxis:
				ranks = x.Strategy.Ranks()
			}
			b += c.Sent() * units.Bytes(ranks)
		}
		return b
	}
	for _, k := range x.Collective {
		if k >= 0 {
			b += x.Collectives[k].Sent()
		}
	}
	return b
}
