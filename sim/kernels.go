package sim

import "placer/plan"

// Kernels returns the kernel of every op in the last EvaluateFused that was given a
// fusion, [N], and the seconds that each kernel takes, [K]. Both hold until the next
// evaluation.
func (s *Simulator) Kernels() (kernel []int32, takes []float64) {
	f := s.fused
	k := &f.k
	if f.takes == nil {
		f.takes = make([]float64, s.n)
	}
	takes = f.takes[:k.n]
	for i := range takes {
		takes[i] = f.run.ops[i].seconds
	}
	return k.of, takes
}

// Fuse returns what Kernels does of a plan that is not run.
func (s *Simulator) Fuse(device, fusion []uint8) (kernel []int32, takes []float64) {
	s.fuse(device, nil, fusion)
	return s.Kernels()
}

// Critical writes into share, [D], the part of the step of p that its critical
// path spends computing on each device, into on, [N], whether an op is on it, and
// into idle, [N], how many seconds the device of an op is idle between when it alone,
// with what is fused into it, could have started and when its kernel does. Where p
// has a fusion it is an evaluation to Kernels and Savings.
func (s *Simulator) Critical(p *plan.Plan, share []float64, on []bool, idle []float64) {
	clear(share)
	clear(on)
	h := s.history(p)
	h.idle(idle)
	for _, x := range h.criticalPath() {
		if x.Transfer {
			continue
		}
		share[x.Device] += float64(x.End-x.Start) / h.makespan
		for _, i := range h.members(h.kernels.of[x.Op]) {
			on[i] = true
		}
	}
}

// Timeline writes into on, [N], whether an op of p is on its critical path, into ready,
// [N], when the last input of each op's kernel is on its device, and into start, [N],
// when that kernel starts, in seconds. It returns the length of the step. Where p has a
// fusion it is an evaluation to Kernels and Savings.
func (s *Simulator) Timeline(p *plan.Plan, on []bool, ready, start []float64) float64 {
	clear(on)
	h := s.history(p)
	for _, x := range h.criticalPath() {
		if x.Transfer {
			continue
		}
		for _, i := range h.members(h.kernels.of[x.Op]) {
			on[i] = true
		}
	}
	for k := range int32(h.n) {
		at := h.ready(k)
		for _, i := range h.members(k) {
			ready[i], start[i] = at, h.starts[k]
		}
	}
	return h.makespan
}

// KernelCosts returns what s knows of kernels, for another goroutine.
func (s *Simulator) KernelCosts() plan.KernelCosts { return newSimulator(&s.tables) }
