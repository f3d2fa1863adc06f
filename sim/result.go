package sim

import (
	"placer/graph"
	"placer/plan"
	"placer/units"
)

// Result is what is known of one step under one plan.
type Result struct {
	Makespan units.Seconds
	Kernels  int             // that ran: ops, less those fused with others
	Busy     []units.Seconds // [D] time in which a device computes or copies
	Idle     []units.Seconds // [D] the rest of the makespan
	// PeakBytes is the exact peak of each device, [D]; nil when memory was not
	// counted.
	PeakBytes []units.Bytes
	LinkBytes []units.Bytes   // [L] carried
	LinkBusy  []units.Seconds // [L] time in which a link carries something
	// CriticalPath leads from time 0 to the makespan without a gap: each step
	// starts when the one before it ends.
	CriticalPath []Step
	Trace        *Trace // nil unless asked for
}

// Options chooses the optional parts of a Result.
type Options struct {
	Trace bool
}

// Trace is everything that happened in a step. A trace of a large graph is
// large: some hundred bytes for every op.
type Trace struct {
	Ops       []OpSpan       // by start, then device
	Transfers []TransferSpan // by the order of becoming ready
	Memory    [][]Sample     // [D]; nil when memory was not counted
}

// OpSpan is one execution of an op, or of the kernel of which it is the lowest.
type OpSpan struct {
	Op                graph.OpID
	Fused             []graph.OpID // the other ops of its kernel, ascending
	Device            int
	Ready, Start, End units.Seconds // Ready: when the last input was there
}

// TransferSpan is one transfer of a tensor or, if Tensor is NoTensor, of the word
// that Op has ended. A copy that occupies the sender is there a delivery after End;
// one that serves several devices is a transfer to each.
type TransferSpan struct {
	Op                graph.OpID // producer
	Tensor            graph.TensorID
	From, To          int // devices
	Bytes             units.Bytes
	Ready, Start, End units.Seconds
}

// NoTensor stands where there is no tensor.
const NoTensor graph.TensorID = -1

// Sample says how many bytes a device holds from At on.
type Sample struct {
	At    units.Seconds
	Bytes units.Bytes
}

// Run simulates p and returns all there is to know. The error is an *Infeasible,
// beside a complete result, if a device's memory does not suffice; any other
// error means that p is invalid and comes without a result.
func (s *Simulator) Run(p *plan.Plan, opt Options) (*Result, error) {
	if err := p.Check(s.g, s.m); err != nil {
		return nil, err
	}
	h := s.history(p)
	r := &Result{
		Makespan:  units.Seconds(h.makespan),
		Kernels:   h.n,
		Busy:      make([]units.Seconds, s.d),
		Idle:      make([]units.Seconds, s.d),
		LinkBytes: make([]units.Bytes, len(s.m.Links)),
		LinkBusy:  make([]units.Seconds, len(s.m.Links)),
	}
	for i, d := range h.device {
		r.Busy[d] += units.Seconds(h.takes(int32(i)))
	}
	h.copying(r.Busy)
	for d, b := range r.Busy {
		r.Idle[d] = max(0, r.Makespan-b)
	}
	h.links(r)
	r.CriticalPath = h.criticalPath()
	if opt.Trace {
		r.Trace = h.trace()
	}
	if !s.cfg.Memory {
		return r, nil
	}
	accounts := h.accounts()
	for d := range accounts {
		samples, peak, _ := accounts[d].samples()
		r.PeakBytes = append(r.PeakBytes, peak)
		if opt.Trace {
			r.Trace.Memory = append(r.Trace.Memory, samples)
		}
	}
	if err := h.infeasible(accounts); err != nil {
		return r, err
	}
	return r, nil
}
