package strategies

import (
	"math"

	"placer/graph/strategy"
	"placer/hw"
)

// NCCL's model of its own collectives, by which it chooses algorithm and protocol: a base, a latency
// for each hop, a rate (NVIDIA/nccl at 5067397, src/graph/tuning.cc, whose names are in brackets).
// Nothing in it is fitted here. Left out are what adds up in network switches (CollNet), PAT, and
// ceilings for each channel, which bind on none of the machines known here.

// protocol is how NCCL sends: LL has a flag with every 4 bytes, LL128 with every 120, in
// simple a receiver waits for a whole part.
type protocol int

const (
	ll protocol = iota
	ll128
	simple
)

// microseconds of the protocols.
type microseconds [3]float64

// seconds of p.
func (m microseconds) seconds(p protocol) float64 { return 1e-6 * m[p] }

// llMost returns the most that LL sends between the ranks of hosts, in B/s (llMaxBws). Between hosts
// it goes by the vendor of the CPU, which machines do not tell: Intel's, the faster, are taken.
func llMost(arch, hosts int) float64 {
	switch {
	case hosts == 2:
		return 39e9
	case hosts > 2:
		return 20.4e9
	case arch >= 100:
		return 282e9
	case arch >= 90:
		return 141e9
	case arch >= 80:
		return 87.7e9
	}
	return 39e9
}

// protocols returns those that NCCL uses in f: LL128 not over PCIe, where its 128 bytes need not
// arrive together, and not before compute capability 7.0.
func (f *fabric) protocols() []protocol {
	if f.medium == hw.PCIe || f.arch < 70 {
		return []protocol{ll, simple}
	}
	return []protocol{ll, ll128, simple}
}

// quickest returns the least of what the protocols of f take.
func (f *fabric) quickest(by func(protocol) float64) float64 {
	best := math.Inf(1)
	for _, p := range f.protocols() {
		best = min(best, by(p))
	}
	return best
}

// local returns the ranks of a host.
func (f *fabric) local() int { return f.ranks / f.hosts }

// rate returns what every rank of a ring sends to the next, in B/s: hosts have as many rings as they
// have NICs, or as their links carry.
func (f *fabric) rate() float64 {
	switch {
	case f.hosts == 1:
		return f.bus
	case f.local() == 1:
		return f.wire
	}
	return min(f.bus, f.wire)
}

// nccl returns how long c takes in f by the quickest algorithm and protocol.
func (f *fabric) nccl(c strategy.Collective) float64 {
	if c.Kind == strategy.AllToAll && f.hosts > 1 {
		return f.launch + f.sends(c)
	}
	return f.launch + min(f.ring(c), f.tree(c), f.nvls(c))
}
