package sim

import "placer/units"

// copies returns the last transfer of each op, [K], or none.
func (h *history) copies() []int32 {
	last := make([]int32, h.n)
	for i := range last {
		last[i] = none
	}
	for k := range h.transfers {
		last[h.producer[h.transfers[k].message()]] = int32(k)
	}
	return last
}

// waived reports whether a control dependency of op i on op p does not hold.
func (h *history) waived(p, i int32) bool { return h.receipts != nil && h.device[p] != h.device[i] }

// copying adds to busy, [D], the seconds that devices spend on copies.
func (h *history) copying(busy []units.Seconds) {
	if h.lastCopy == nil {
		return
	}
	for k := range h.transfers {
		if x := &h.transfers[k]; h.firstOf[x.message()] == int32(k) { // one copy serves all
			busy[h.device[h.producer[x.message()]]] += units.Seconds(x.end - x.start)
		}
	}
}

// copyBefore returns the copy that kept the sender of transfer k from making it at
// once: a transfer, or none.
func (h *history) copyBefore(k int32) int32 {
	m := h.transfers[k].message()
	if k = h.firstOf[m] - 1; k >= 0 && h.producer[h.transfers[k].message()] == h.producer[m] {
		return k
	}
	return none
}
