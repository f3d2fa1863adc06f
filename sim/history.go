package sim

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/plan"
	"placer/units"
)

// history is a finished run, from which everything else follows. It borrows the
// simulator's state until the simulator's next run. What it calls ops, in its
// tables and below, are kernels.
type history struct {
	*tables
	kernels   *kernels
	device    []uint8 // [K]
	makespan  float64
	starts    []float64  // [K]
	transfers []transfer // in the order of becoming ready
	firstOf   []int32    // [messages] first transfer of each message, or none

	// Where transfers occupy the sender, else nil:
	received []float64 // [K] seconds spent on what it is first to read
	lastCopy []int32   // [K] the last transfer that it made, or none
}

func (s *Simulator) history(p *plan.Plan) *history {
	run, device, priority, k := s, p.Device, p.Priority, (*kernels)(nil)
	if p.Fusion == nil {
		k = alone(s.n)
	} else {
		f := s.fuse(p.Device, p.Priority, p.Fusion)
		run, device, k = f.run, f.device[:f.k.n], &f.k
		if priority != nil {
			priority = f.rank[:f.k.n]
		}
	}
	run.record, run.starts = true, make([]float64, run.n)
	makespan := run.run(device, priority)
	h := &history{tables: &run.tables, kernels: k, device: device, makespan: makespan, starts: run.starts, transfers: run.transfers}
	run.record, run.starts = false, nil
	h.firstOf = make([]int32, len(h.messages))
	for i := range h.firstOf {
		h.firstOf[i] = none
	}
	for k := len(h.transfers) - 1; k >= 0; k-- {
		h.firstOf[h.transfers[k].message()] = int32(k)
	}
	if run.sending != nil {
		h.received, h.lastCopy = run.sending.receipts, h.copies()
	}
	return h
}

// members returns the ops of kernel i, ascending.
func (h *history) members(i int32) []int32 {
	return h.kernels.ops[h.kernels.at[i]:h.kernels.at[i+1]]
}

// lowest returns the op that kernel i goes by.
func (h *history) lowest(i int32) graph.OpID { return graph.OpID(h.members(i)[0]) }

func (h *history) takes(i int32) float64 {
	seconds := h.tables.takes(int(h.device[i]), i)
	if h.received != nil {
		seconds = h.received[i] + seconds
	}
	return seconds
}

func (h *history) end(i int32) float64 { return h.starts[i] + h.takes(i) }

// free returns when the device of op i is free again.
func (h *history) free(i int32) float64 {
	if h.lastCopy != nil && h.lastCopy[i] != none {
		return h.transfers[h.lastCopy[i]].end
	}
	return h.end(i)
}

// arrival returns when message m is on device d, and the transfer that brought
// it there: none if it was made there.
func (h *history) arrival(m int32, d uint8) (at float64, transfer int32) {
	if p := h.producer[m]; h.device[p] == d {
		return h.end(p), none
	}
	k := h.firstOf[m]
	for h.transfers[k].dst() != int(d) { // the transfers of a message are neighbours
		k++
	}
	at = h.transfers[k].end
	if h.receipts != nil {
		at += h.receipts[int(h.device[h.producer[m]])*h.d+int(d)].delivery
	}
	return at, k
}

// waits calls f for every message that op i waits for: inputs as listed, then
// control dependencies that hold.
func (h *history) waits(i int32, f func(m int32)) {
	for _, op := range h.members(i) {
		for _, t := range h.g.Inputs(graph.OpID(op)) {
			if p := h.kernels.of[h.g.Tensor(t).Producer]; p != i {
				f(h.find(p, int32(t)))
			}
		}
	}
	for _, op := range h.members(i) {
		for _, p := range h.g.Control(graph.OpID(op)) {
			if q := h.kernels.of[p]; !h.waived(q, i) {
				f(h.find(q, none))
			}
		}
	}
}

// find returns the message of op p that carries tensor t, or the control message
// if t is none.
func (h *history) find(p, t int32) int32 {
	for m := h.first[p]; ; m++ {
		if h.messages[m].tensor == t {
			return m
		}
	}
}

// ready returns when the last input of op i was there.
func (h *history) ready(i int32) (at float64) {
	h.waits(i, func(m int32) {
		a, _ := h.arrival(m, h.device[i])
		at = max(at, a)
	})
	return at
}

func (h *history) route(x *transfer) []int32 {
	r := &h.routes[int(h.device[h.producer[x.message()]])*h.d+x.dst()]
	return h.hops[r.first:r.end]
}

// links adds up what each link carried. Transfers that share a link under fair
// sharing overlap; a link is busy while there is any.
func (h *history) links(r *Result) {
	spans := make([][]int32, len(h.m.Links))
	for k := range h.transfers {
		for _, l := range h.route(&h.transfers[k]) {
			r.LinkBytes[l] += units.Bytes(h.messages[h.transfers[k].message()].size)
			spans[l] = append(spans[l], int32(k))
		}
	}
	for l, ks := range spans {
		slices.SortStableFunc(ks, func(a, b int32) int { return cmp.Compare(h.transfers[a].start, h.transfers[b].start) })
		until := 0.0
		for _, k := range ks {
			x := &h.transfers[k]
			if x.end > until {
				r.LinkBusy[l] += units.Seconds(x.end - max(x.start, until))
				until = x.end
			}
		}
	}
}

func (h *history) trace() *Trace {
	tr := &Trace{Ops: make([]OpSpan, h.n), Transfers: make([]TransferSpan, len(h.transfers))}
	for i := range tr.Ops {
		k := int32(i)
		tr.Ops[i] = OpSpan{Op: h.lowest(k), Device: int(h.device[i]),
			Ready: units.Seconds(h.ready(k)), Start: units.Seconds(h.starts[i]), End: units.Seconds(h.end(k))}
		for _, op := range h.members(k)[1:] {
			tr.Ops[i].Fused = append(tr.Ops[i].Fused, graph.OpID(op))
		}
	}
	slices.SortFunc(tr.Ops, func(a, b OpSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Op, b.Op))
	})
	for k := range tr.Transfers {
		tr.Transfers[k] = h.span(int32(k))
	}
	return tr
}

func (h *history) span(k int32) TransferSpan {
	x := &h.transfers[k]
	m, p := &h.messages[x.message()], h.producer[x.message()]
	op := h.lowest(p)
	if m.tensor != none {
		op = h.g.Tensor(graph.TensorID(m.tensor)).Producer
	}
	return TransferSpan{Op: op, Tensor: graph.TensorID(m.tensor), From: int(h.device[p]), To: x.dst(),
		Bytes: units.Bytes(m.size), Ready: units.Seconds(h.end(p)), Start: units.Seconds(x.start), End: units.Seconds(x.end)}
}
