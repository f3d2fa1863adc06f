package strategies

import (
	"math"
	"strconv"
	"strings"

	"placer/graph/strategy"
	"placer/roofline"
	"placer/units"
)

// Small tensors go round in NCCL's protocol LL, in which each word of data has a flag with it,
// so that nobody waits for a whole part: a collective starts as a send does, has a hop for each
// step of a ring, and half of the bandwidth at most. Figures: NVIDIA/nccl, src/graph/tuning.cc at
// 5067397 (baseLatencies of a ring; hwLatencies, 0.6 us over NVLink and 1 us over PCIe, which a
// machine does not tell apart; llMaxBws of one host).
const (
	flaggedBase = 6.6e-6 // s
	flaggedHop  = 1e-6   // s
)

// flaggedRate returns the most that LL sends on GPUs of an architecture, in B/s; 0 where there
// is no NCCL.
func flaggedRate(arch string) float64 {
	n, err := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	switch {
	case err != nil:
		return 0
	case n >= 100:
		return 282e9
	case n >= 90:
		return 141e9
	case n >= 80:
		return 87.7e9
	}
	return 39e9
}

// flaggedSeconds returns how long c takes in LL where all pairs of ranks are alike, +Inf
// where it cannot.
func (j *Judge) flaggedSeconds(c strategy.Collective) float64 {
	rate := flaggedRate(j.Machine.Devices[0].Arch)
	if rate == 0 || !j.fold {
		return math.Inf(1)
	}
	latency, bandwidth := j.Machine.Transfer(0, 1)
	rate = min(rate, float64(bandwidth)/2)
	return float64(latency) + flaggedBase + float64(c.Kind.Steps(c.Ranks))*flaggedHop + float64(c.Sent())/rate
}

// A one-shot all-reduce is one kernel in which every GPU reads what all others have: it starts,
// waits for all, and reads. What it takes beside the bytes is fitted to vLLM's own on four H100 of
// 0.5 to 4 MiB (vllm-project/vllm, pull request 24532, column ca_1stage: 10 to 38 us).
const (
	oneShotBase  = 6.45e-6 // s
	oneShotRanks = 8       // the most that such kernels are written for
	oneShotRate  = 64e9    // B/s between two GPUs, one way; PCIe has less, and servers leave these to NCCL
)

// oneShotSeconds returns how long c takes as a one-shot all-reduce, +Inf where there is none.
func (j *Judge) oneShotSeconds(c strategy.Collective) float64 {
	if !j.OneShot || !j.fold || c.Kind != strategy.AllReduce || c.Ranks < 2 || c.Ranks > oneShotRanks {
		return math.Inf(1)
	}
	_, bandwidth := j.Machine.Transfer(0, 1)
	if float64(bandwidth) < oneShotRate {
		return math.Inf(1)
	}
	return oneShotBase + float64(c.Ranks-1)*float64(c.Bytes)/float64(bandwidth)
}

// short reports whether c, of a step on mesh m, is quicker in one op than as a ring.
func (j *Judge) short(m strategy.Mesh, c strategy.Collective) (bool, error) {
	ring, err := j.ringSeconds(m, c)
	return min(j.flaggedSeconds(c), j.oneShotSeconds(c)) < ring, err
}

// collectiveSeconds returns how long c takes when all groups of a stage run one at once, as a
// ring, in LL or as a one-shot, whichever is quickest.
func (j *Judge) collectiveSeconds(m strategy.Mesh, c strategy.Collective) (float64, error) {
	ring, err := j.ringSeconds(m, c)
	return min(ring, j.flaggedSeconds(c), j.oneShotSeconds(c)), err
}

// ringSeconds returns how long the rings of c take when all groups of a stage run one at
// once.
func (j *Judge) ringSeconds(m strategy.Mesh, c strategy.Collective) (float64, error) {
	key := ringKey{m, c}
	if s, ok := j.rings[key]; ok {
		return s, nil
	}
	if c.Ranks == 1 {
		return float64(roofline.InPlace), nil
	}
	x, err := strategy.Rings(c, m.Groups(c.Axis, c.Stage))
	if err != nil {
		return 0, err
	}
	s, d, err := j.Simulator(x)
	if err != nil {
		return 0, err
	}
	j.rings[key] = s.Evaluate(d).Value
	return j.rings[key], nil
}

// sent adds up what the ranks of x send in collectives that an op of each stands for.
func sent(x *strategy.Step) (b units.Bytes) {
	if x.Folded { // one stands for those of all groups of its stage
		for _, c := range x.Collectives {
			b += c.Sent() * units.Bytes(x.Strategy.Data*x.Strategy.Tensor)
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
