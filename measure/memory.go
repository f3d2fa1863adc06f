package measure

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/sim"
)

// layout says where everything of a step lies in the slabs of its devices.
type layout struct {
	tensor   map[place]uint64 // offset of a tensor on a device
	resident []uint64         // [N] offset of an op's permanent bytes
	slab     []uint64         // [D] bytes needed
}

type place struct {
	t   graph.TensorID
	dev int
}

// holding is a stretch of memory on a device for some of the simulated step.
type holding struct {
	dev         int
	bytes       uint64
	from, until float64
	offset      uint64
	t           graph.TensorID // or sim.NoTensor
}

// planMemory assigns offsets by the lifetimes of the simulated step: permanent
// bytes first, then everything else in the order of time, each into the smallest
// hole that takes it. So fragmentation counts, as it does for an allocator.
func planMemory(g *graph.Graph, m *hw.Machine, device []uint8, c *program, tr *sim.Trace) *layout {
	l := &layout{tensor: map[place]uint64{}, resident: make([]uint64, g.NumOps()), slab: make([]uint64, m.NumDevices())}
	for i := range g.NumOps() {
		if r := g.Op(graph.OpID(i)).Resident; r > 0 {
			dev := device[i]
			l.resident[i] = l.slab[dev]
			l.slab[dev] += round(uint64(r))
		}
	}
	start, end := make([]float64, g.NumOps()), make([]float64, g.NumOps())
	for _, x := range tr.Ops {
		for _, i := range c.kernels[c.of[x.Op]].ops {
			start[i], end[i] = float64(x.Start), float64(x.End)
		}
	}
	l.allocate(lifetimes(g, device, c, tr, start, end))
	for i := range g.NumOps() { // resident tensors are views of their op's bytes
		first, last := g.Outputs(graph.OpID(i))
		for t := first; t < last; t++ {
			if g.Tensor(t).Resident {
				l.tensor[place{t, int(device[i])}] = l.resident[i]
			}
		}
	}
	for t, x := range c.shares(g) { // what a view is of comes before it
		if x >= 0 {
			dev := int(device[g.Tensor(graph.TensorID(t)).Producer])
			l.tensor[place{graph.TensorID(t), dev}] = l.tensor[place{x, dev}]
		}
	}
	return l
}

// change is the begin or the end of a holding.
type change struct {
	at    float64
	alloc bool
	h     *holding
}

// allocate gives everything in hold its offset, above the permanent bytes.
func (l *layout) allocate(hold []holding) {
	changes := make([]change, 0, 2*len(hold))
	for i := range hold {
		h := &hold[i]
		changes = append(changes, change{h.from, true, h}, change{h.until, false, h})
	}
	// At one instant all frees precede all allocations, except of what lives for
	// no time.
	slices.SortStableFunc(changes, func(a, b change) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		if a.h == b.h || a.alloc == b.alloc {
			return 0
		}
		if a.alloc {
			return 1
		}
		return -1
	})
	free := make([]holes, len(l.slab))
	for k := range free {
		free[k].end = l.slab[k]
	}
	for _, c := range changes {
		if !c.alloc {
			free[c.h.dev].give(c.h.offset, c.h.bytes)
			continue
		}
		c.h.offset = free[c.h.dev].take(c.h.bytes)
		if c.h.t != sim.NoTensor {
			l.tensor[place{c.h.t, c.h.dev}] = c.h.offset
		}
	}
	for k := range free {
		l.slab[k] = max(l.slab[k], free[k].high)
	}
}

// shares returns the tensor in whose memory each tensor is, [T], or -1: views are where
// what they are views of is, if their kernel does not keep that to itself.
func (c *program) shares(g *graph.Graph) []graph.TensorID {
	of := fuse.Views(g)
	for t := range of { // what a view is of comes before it
		if x := of[t]; x >= 0 && c.of[g.Tensor(x).Producer] == c.of[g.Tensor(graph.TensorID(t)).Producer] && !c.held(g, x) {
			of[t] = of[x]
		}
	}
	return of
}

// lifetimes lists what the simulator counts: outputs that kernels do not keep to
// themselves and that are no views, copies on other devices and workspaces.
func lifetimes(g *graph.Graph, device []uint8, c *program, tr *sim.Trace, start, end []float64) (hold []holding) {
	of := c.shares(g)
	last := map[place]float64{} // last use of a tensor's memory on a device
	for _, x := range tr.Transfers {
		from := place{x.Tensor, x.From}
		last[from] = max(last[from], float64(x.End))
	}
	for k := len(of) - 1; k >= 0; k-- { // views before what they are of
		t := graph.TensorID(k)
		for _, v := range g.Consumers(t) {
			at := place{t, int(device[v])}
			last[at] = max(last[at], end[v])
		}
		if x := of[k]; x >= 0 && c.held(g, t) {
			dev := int(device[g.Tensor(t).Producer])
			last[place{x, dev}] = max(last[place{x, dev}], last[place{t, dev}])
		}
	}
	for _, x := range tr.Transfers {
		if x.Tensor != sim.NoTensor && x.Bytes > 0 {
			hold = append(hold, holding{x.To, round(uint64(x.Bytes)), float64(x.Start), max(float64(x.End), last[place{x.Tensor, x.To}]), 0, x.Tensor})
		}
	}
	for i := range g.NumOps() {
		id, dev := graph.OpID(i), int(device[i])
		if w := g.Op(id).Workspace; w > 0 {
			hold = append(hold, holding{dev, round(uint64(w)), start[i], end[i], 0, sim.NoTensor})
		}
		first, after := g.Outputs(id)
		for t := first; t < after; t++ {
			if x := g.Tensor(t); !x.Resident && x.Bytes > 0 && of[t] < 0 && c.held(g, t) {
				hold = append(hold, holding{dev, round(uint64(x.Bytes)), start[i], max(end[i], last[place{t, dev}]), 0, t})
			}
		}
	}
	return hold
}

// holes is the free memory of a slab that grows at its end.
type holes struct {
	free []hole // by offset, no two adjacent
	end  uint64 // first byte never used
	high uint64
}

type hole struct{ offset, bytes uint64 }

// take returns the offset of the smallest hole of at least n bytes, or of new
// memory at the end.
func (h *holes) take(n uint64) uint64 {
	best := -1
	for i, x := range h.free {
		if x.bytes >= n && (best < 0 || x.bytes < h.free[best].bytes) {
			best = i
		}
	}
	if best >= 0 {
		at := h.free[best].offset
		h.free[best].offset += n
		if h.free[best].bytes -= n; h.free[best].bytes == 0 {
			h.free = slices.Delete(h.free, best, best+1)
		}
		return at
	}
	at := h.end
	if k := len(h.free) - 1; k >= 0 && h.free[k].offset+h.free[k].bytes == h.end { // the last hole grows
		at = h.free[k].offset
		h.free = h.free[:k]
	}
	h.end = at + n
	h.high = max(h.high, h.end)
	return at
}

// give makes n bytes at offset a hole, joined with its neighbours.
func (h *holes) give(offset, n uint64) {
	i, _ := slices.BinarySearchFunc(h.free, offset, func(x hole, o uint64) int { return cmp.Compare(x.offset, o) })
	h.free = slices.Insert(h.free, i, hole{offset, n})
	if i+1 < len(h.free) && offset+n == h.free[i+1].offset {
		h.free[i].bytes += h.free[i+1].bytes
		h.free = slices.Delete(h.free, i+1, i+2)
	}
	if i > 0 && h.free[i-1].offset+h.free[i-1].bytes == offset {
		h.free[i-1].bytes += h.free[i].bytes
		h.free = slices.Delete(h.free, i, i+1)
	}
}
