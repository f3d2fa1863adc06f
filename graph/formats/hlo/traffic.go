package hlo

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// maxViews bounds how many views of views are seen through, which a damaged file may have in a
// ring.
const maxViews = 64

// traffic is the device memory that x reads and writes. Of an array that is written in
// place, and of one of which a part is taken, only that part counts, as in XLA's
// HloCostAnalysis.
func (x *instruction) traffic(class graph.Class, out units.Bytes) units.Bytes {
	switch class {
	case graph.ClassInput, graph.ClassVariable, graph.ClassConst, graph.ClassMeta:
		return 0
	}
	if updates := x.updates(); updates != nil {
		n := units.Bytes(0)
		for _, u := range updates {
			n = min(n+2*u.shape.bytes(), graph.MaxBytes)
			if !x.assigns() { // what is added to is read
				n = min(n+u.shape.bytes(), graph.MaxBytes)
			}
		}
		if x.opcode == "scatter" {
			n = min(n+x.operands[len(updates)].shape.bytes(), graph.MaxBytes)
		}
		return n
	}
	if class == graph.ClassGather || x.takes() {
		return min(2*out, graph.MaxBytes)
	}
	var reads map[int64]units.Bytes // of a fusion's parameters
	if x.opcode == "fusion" && len(x.called) == 1 && x.called[0].root != nil {
		reads = x.called[0].reads()
		out, _ = x.called[0].gives()
	}
	in := units.Bytes(0)
	for k, from := range x.operands {
		twice := false
		for _, before := range x.operands[:min(k, 8)] {
			twice = twice || before == from
		}
		if !twice {
			n := from.shape.bytes()
			if part, ok := reads[int64(k)]; ok {
				n = min(n, part)
			}
			in = min(in+n, graph.MaxBytes)
		}
	}
	return min(in+out, graph.MaxBytes)
}

// takes reports whether x reads no more of its first operand than it gives.
func (x *instruction) takes() bool {
	switch x.opcode {
	case "slice", "dynamic-slice", "gather":
		return len(x.operands) > 0
	}
	return false
}

// updates returns what x writes into arrays that it gives back; nil where it does not.
func (x *instruction) updates() []*instruction {
	switch n := len(x.operands); {
	case x.opcode == "dynamic-update-slice" && n > 1:
		return x.operands[1:2]
	case x.opcode == "scatter" && n > 2 && n%2 == 1: // arrays, where to write, updates
		return x.operands[n/2+1:]
	}
	return nil
}

// assigns reports whether what x writes into an array does not depend on what is there.
func (x *instruction) assigns() bool {
	if x.opcode != "scatter" {
		return true
	}
	return len(x.called) == 1 && x.called[0].root != nil && x.called[0].root.opcode == "parameter"
}

// view reports whether x gives its operand by another name.
func (x *instruction) view() bool {
	return (x.opcode == "bitcast" || x.opcode == "reshape") && len(x.operands) == 1
}

// reads returns, of the parameters of a fused computation of which it reads parts alone, how
// much that is.
func (c *computation) reads() map[int64]units.Bytes {
	of := map[*instruction]int64{} // parameters, and views of them
	n, whole := map[int64]units.Bytes{}, map[int64]bool{}
	for _, x := range c.list {
		switch {
		case x.opcode == "parameter":
			of[x], n[x.attr.index] = x.attr.index, 0
			continue
		case x.view():
			if p, ok := of[x.operands[0]]; ok {
				of[x] = p
				continue
			}
		}
		for k, from := range x.operands {
			p, ok := of[from]
			switch updates := x.updates(); {
			case !ok:
			case k == 0 && x.takes():
				n[p] = min(n[p]+x.shape.bytes(), graph.MaxBytes)
			case k == 0 && updates != nil && len(updates) == 1:
				if !x.assigns() {
					n[p] = min(n[p]+updates[0].shape.bytes(), graph.MaxBytes)
				}
			default:
				whole[p] = true
			}
		}
	}
	if p, ok := of[c.root]; ok {
		whole[p] = true
	}
	for p := range whole {
		delete(n, p)
	}
	return n
}

// made returns how much of what x gives needs memory of its own.
func (x *instruction) made() units.Bytes {
	if (x.opcode == "fusion" || x.opcode == "call") && len(x.called) == 1 && x.called[0].root != nil {
		_, made := x.called[0].gives()
		return made
	}
	if x.updates() != nil || x.opcode == "opt-barrier" {
		return 0
	}
	if kept := x.invariants(); kept != nil {
		n := units.Bytes(0)
		for k := range x.shape.tuple {
			if !kept[k] {
				n = min(n+x.shape.tuple[k].bytes(), graph.MaxBytes)
			}
		}
		return n
	}
	return x.shape.bytes()
}

// gives returns how much of its results a fused computation writes, and how much of them
// needs memory of its own.
func (c *computation) gives() (written, made units.Bytes) {
	parts := []*instruction{c.root}
	if c.root.opcode == "tuple" {
		parts = c.root.operands
	}
	for _, x := range parts {
		whole := x.shape.bytes()
		for n := 0; n < maxViews && x.view(); n++ {
			x = x.operands[0]
		}
		if updates := x.updates(); len(updates) == 1 {
			written = min(written+updates[0].shape.bytes(), graph.MaxBytes)
			continue
		}
		written, made = min(written+whole, graph.MaxBytes), min(made+whole, graph.MaxBytes)
	}
	return written, made
}

// fused returns how much of the traffic of c's instructions, one by one, stays within
// kernels: what an elementwise instruction or a copy makes for others, and for reductions,
// alone. These are within.
func (b *builder) fused(c *computation) (saved float64, within map[*instruction]bool) {
	source := func(x *instruction) *instruction {
		for n := 0; n < maxViews && b.kind(x).Class() == graph.ClassMeta && len(x.operands) == 1; n++ {
			x = x.operands[0]
		}
		return x
	}
	users, apart := map[*instruction]int{}, map[*instruction]bool{source(c.root): true}
	for _, x := range c.list {
		if source(x) != x {
			continue
		}
		joins := b.joins(x) || x.opcode == "reduce"
		for k, from := range x.operands {
			if !joins || k == 0 && x.takes() {
				apart[source(from)] = true
			} else if !slices.Contains(x.operands[:k], from) {
				users[source(from)]++
			}
		}
		for _, from := range x.captured {
			apart[source(from)] = true
		}
	}
	within = map[*instruction]bool{}
	for x, n := range users {
		if b.joins(x) && !apart[x] {
			within[x] = true
			saved += float64(1+n) * float64(x.shape.bytes())
		}
	}
	return saved, within
}

// joins reports whether x shares the kernel of what reads it.
func (b *builder) joins(x *instruction) bool {
	switch x.opcode {
	case "parameter", "tuple", "get-tuple-element", "constant":
		return false
	}
	return len(x.inner()) == 0 && x.updates() == nil && !b.kind(x).Leads()
}
