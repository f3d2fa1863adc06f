package sim

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// Reason says what a step of the critical path waited for, which is what the
// step before it did.
type Reason string

// Reasons.
const (
	AtStart     Reason = "start"      // nothing: it starts at time 0
	ForCompute  Reason = "compute"    // an op that makes an input, on the same device
	ForTransfer Reason = "transfer"   // the transfer of an input
	ForDevice   Reason = "queue"      // the device, busy with another op or a copy
	ForLink     Reason = "link queue" // a link, busy with another transfer
)

// Step is an op or a transfer on the critical path.
type Step struct {
	Op graph.OpID // that runs or, in a transfer, that has sent; of a kernel the lowest
	// Transfer says that the step is a transfer of Tensor, which is NoTensor for a
	// control message.
	Transfer   bool
	Tensor     graph.TensorID
	From       int // device that sends, in a transfer
	Device     int // device that runs or receives
	Link       int // in a transfer: the link waited for, else the first of its route; None for ops
	Start, End units.Seconds
	Reason     Reason
}

// criticalPath walks back from the op that ends last. Where several causes end at
// the same instant it takes the first input in order, and an input before the
// queue. Times so unequal that an op ends when it starts may lead the walk in a
// circle; it stops after as many steps as there are ops and transfers.
func (h *history) criticalPath() (steps []Step) {
	previous := h.previousOnDevice()
	blocker, blockedOn := h.blockers()
	op := int32(0)
	for i := range int32(h.n) {
		if h.end(i) > h.end(op) {
			op = i
		}
	}
	transfer := int32(none) // if not none, the walk is at a transfer
	for op != none && len(steps) < h.n+len(h.transfers) {
		var st Step
		if transfer != none {
			st, op, transfer = h.transferStep(transfer, blocker, blockedOn)
			st.End = steps[len(steps)-1].Start // with the delivery, where that was waited for
		} else {
			st, op, transfer = h.opStep(op, previous)
		}
		steps = append(steps, st)
	}
	slices.Reverse(steps)
	return steps
}

// opStep describes op i and returns the step before it.
func (h *history) opStep(i int32, previous []int32) (st Step, op, transfer int32) {
	start := h.starts[i]
	st = Step{Op: h.lowest(i), Tensor: NoTensor, From: none, Link: none, Device: int(h.device[i]),
		Start: units.Seconds(start), End: units.Seconds(h.end(i)), Reason: AtStart}
	op, transfer = none, none
	h.waits(i, func(m int32) {
		at, k := h.arrival(m, h.device[i])
		if at != start || st.Reason != AtStart {
			return
		}
		op, transfer, st.Reason = h.producer[m], k, ForCompute
		if k != none {
			st.Reason = ForTransfer
		}
	})
	if st.Reason == AtStart && previous[i] != none {
		op, st.Reason = previous[i], ForDevice
		if h.lastCopy != nil {
			transfer = h.lastCopy[op]
		}
	}
	return st, op, transfer
}

// transferStep describes transfer k and returns the step before it.
func (h *history) transferStep(k int32, blocker, blockedOn []int32) (st Step, op, transfer int32) {
	x := h.span(k)
	st = Step{Op: x.Op, Transfer: true, Tensor: x.Tensor, From: x.From, Device: x.To, Start: x.Start, End: x.End}
	st.Reason, st.Link = ForCompute, int(h.route(&h.transfers[k])[0])
	if h.lastCopy != nil {
		if transfer = h.copyBefore(k); transfer != none {
			st.Reason = ForDevice
		}
		return st, h.producer[h.transfers[k].message()], transfer
	}
	if blocker[k] != none {
		st.Reason, st.Link = ForLink, int(blockedOn[k])
		return st, h.producer[h.transfers[blocker[k]].message()], blocker[k]
	}
	return st, h.producer[h.transfers[k].message()], none
}

// previousOnDevice returns the op that ran before each op on its device, or none.
func (h *history) previousOnDevice() []int32 {
	previous := make([]int32, h.n)
	var last [1 << deviceBits]int32
	for d := range last {
		last[d] = none
	}
	for _, i := range byKey(h.starts) {
		d := h.device[i]
		previous[i], last[d] = last[d], i
	}
	return previous
}

// blockers returns, for each transfer that waited for a link, the transfer that
// held it and the link; none for the others.
func (h *history) blockers() (blocker, link []int32) {
	blocker, link = make([]int32, len(h.transfers)), make([]int32, len(h.transfers))
	last := make([]int32, len(h.m.Links))
	for l := range last {
		last[l] = none
	}
	for k := range h.transfers {
		x := &h.transfers[k]
		blocker[k], link[k] = none, none
		waited := x.start > h.end(h.producer[x.message()])
		for _, l := range h.route(x) {
			if p := last[l]; waited && blocker[k] == none && p != none && h.transfers[p].end == x.start {
				blocker[k], link[k] = p, l
			}
			last[l] = int32(k)
		}
	}
	return blocker, link
}
