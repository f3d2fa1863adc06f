package sim

import (
	"cmp"
	"slices"

	"placer/graph"
)

// idle writes into seconds, [N], how long the device of each op is idle between when
// the inputs of the op, and of those that its kernel has before it, are there and when
// the kernel starts.
func (h *history) idle(seconds []float64) {
	idle := make([]float64, h.n)           // [K] of its device before it starts
	on := make([][]int32, 1<<deviceBits)   // kernels in the order in which they start
	busy := make([]float64, 1<<deviceBits) // seconds so far
	for _, k := range byKey(h.starts) {
		d := h.device[k]
		idle[k] = h.starts[k] - busy[d]
		busy[d] += h.takes(k) + (h.free(k) - h.end(k))
		on[d] = append(on[d], k)
	}
	until := func(d uint8, t float64) float64 {
		n, _ := slices.BinarySearchFunc(on[d], t, func(k int32, t float64) int { return cmp.Compare(h.starts[k], t) })
		if n == 0 {
			return t
		}
		last := on[d][n-1]
		return idle[last] + max(0, t-h.free(last))
	}
	ready := make([]float64, len(seconds)) // [N]
	for i := range seconds {
		k := h.kernels.of[i]
		wait := func(p graph.OpID, t int32) {
			at := ready[p]
			if q := h.kernels.of[p]; q != k {
				at, _ = h.arrival(h.find(q, t), h.device[k])
			}
			ready[i] = max(ready[i], at)
		}
		for _, t := range h.g.Inputs(graph.OpID(i)) {
			wait(h.g.Tensor(t).Producer, int32(t))
		}
		for _, p := range h.g.Control(graph.OpID(i)) {
			if !h.waived(h.kernels.of[p], k) {
				wait(p, none)
			}
		}
		seconds[i] = idle[k] - until(h.device[k], ready[i])
	}
}
