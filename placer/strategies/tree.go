package strategies

import (
	"math"
	"math/bits"

	"placer/graph/strategy"
	"placer/hw"
)

// tree returns how long an all-reduce takes as a double binary tree of hosts, each a chain of its
// ranks, by the quickest protocol; +Inf for others.
func (f *fabric) tree(c strategy.Collective) float64 {
	if c.Kind != strategy.AllReduce {
		return math.Inf(1)
	}
	return f.quickest(func(p protocol) float64 { return f.treeBy(p, c) })
}

// treeBy is tree by one protocol.
func (f *fabric) treeBy(p protocol, c strategy.Collective) float64 {
	base := microseconds{6.8, 14, 8.4}  // baseLatencies
	hop := microseconds{0.6, 1.25, 4.0} // hwLatencies
	if f.medium == hw.PCIe {
		hop = microseconds{1, 1.9, 4.0}
	}
	across := microseconds{5, 8.5, 14}
	depth := bits.Len(uint(f.hosts)) - 1
	latency := base.seconds(p) + 2*(float64(f.local()-1)*hop.seconds(p)+float64(depth)*across.seconds(p))
	rate := 0.92 * f.rate()
	switch p {
	case ll:
		rate = min(rate/3.8, llMost(f.arch, f.hosts))
	case ll128:
		share := 120. / 128
		if f.hosts == 1 {
			share = 7. / 9
		}
		rate *= share
	}
	return latency + float64(c.Bytes)/(rate/2*treeCorrection(p, float64(c.Bytes)))
}

// treeCorrection is what trees reach of their rate at that size, by NCCL's own table, whose columns
// are powers of two from 64 B to 256 MB (treeCorrectionFactor).
func treeCorrection(p protocol, size float64) float64 {
	table := [3][24]float64{
		{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
		{1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
		{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
	}
	if size < 64 || size >= 64<<23 {
		return 1
	}
	return table[p][int(math.Log2(size/64))]
}
