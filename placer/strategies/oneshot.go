package strategies

import (
	"math"

	"placer/graph/strategy"
)

// A one-shot all-reduce is one kernel in which every GPU reads what all others have: it starts,
// waits for all, and reads. What it takes beside the bytes is fitted to vLLM's own on four H100 of
// 0.5 to 4 MiB (vllm-project/vllm, pull request 24532, column ca_1stage: 10 to 38 us).
const (
	oneShotBase  = 6.45e-6 // s
	oneShotRanks = 8       // the most that such kernels are written for
	oneShotRate  = 64e9    // B/s between two GPUs, one way; PCIe has less, and servers leave these to NCCL
)

// oneShotSeconds returns how long c takes as a one-shot all-reduce of groups, whose ranks are alike,
// +Inf where there is none.
func (j *Judge) oneShotSeconds(groups [][]int, c strategy.Collective) float64 {
	if !j.OneShot || c.Kind != strategy.AllReduce || c.Ranks < 2 || c.Ranks > oneShotRanks {
		return math.Inf(1)
	}
	_, bandwidth := j.Machine.Transfer(groups[0][0], groups[0][1])
	if float64(bandwidth) < oneShotRate {
		return math.Inf(1)
	}
	return oneShotBase + float64(c.Ranks-1)*float64(c.Bytes)/float64(bandwidth)
}
