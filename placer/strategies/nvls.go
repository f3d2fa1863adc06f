package strategies

import (
	"math"
	"math/bits"

	"placer/graph/strategy"
)

// nvls returns how long an all-reduce takes that a switch of NVLink adds up (NVLink SHARP), between
// hosts as a tree of what theirs have added up; +Inf where there is none. For all-gathers and
// reduce-scatters NCCL's model never prefers it to a ring.
func (f *fabric) nvls(c strategy.Collective) float64 {
	heads := f.local()
	if !f.sharp || f.arch < 90 || heads < 2 || c.Kind != strategy.AllReduce {
		return math.Inf(1)
	}
	efficiency, most := 0.85, [2]float64{57.7e9, 45.5e9} // nvlsEfficiency; perChMaxNVLSTreeBws of two hosts, of more
	if f.arch >= 100 {
		efficiency, most = 0.74, [2]float64{96e9, 80e9}
	}
	latency := 25e-6
	each := f.rate() / float64(heads)
	if f.hosts == 1 {
		each = headRate(f.arch, each)
	}
	// Each rank is the head of a share of the tensor; the parts on their way up and down overlap.
	rate := 2 * each * efficiency * float64(heads-1) / float64(heads)
	if f.hosts > 1 {
		latency += 2 * float64(bits.Len(uint(f.hosts))-1) * 20.9e-6
		if f.hosts == 2 {
			rate = min(rate, 2*each, most[0])
		} else {
			rate = min(rate, each, most[1])
		}
	}
	return latency + float64(c.Sent())/(float64(heads)*rate)
}

// headRate returns the rate of a head, in B/s, of those that NCCL tries
// (sm90SpeedArrayIntra and sm100SpeedArrayIntra in src/graph/search.cc), the largest that a link carries.
func headRate(arch int, most float64) float64 {
	speeds := []float64{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}
	if arch >= 100 {
		speeds = []float64{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18}
	}
	for _, s := range speeds {
		if 1e9*s <= most {
			return 1e9 * s
		}
	}
	return most
}
