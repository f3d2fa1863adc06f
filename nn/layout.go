package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
)

// lifetime is when a buffer is in use, as positions in the order of execution.
type lifetime struct {
	buffer       *buffer
	birth, death int // both inclusive
}

// forever is the death of a buffer that the caller reads after the run.
const forever = math.MaxInt

// slot is memory that several buffers use one after another. It is allocated at
// first use.
type slot struct {
	size   int
	memory []float32
	until  int
}

// layOut gives the buffers of all operations their memory, shared by those whose
// lifetimes do not meet. gorgonia fixes the order of execution when it compiles:
// a stabilised topological sort, which is repeated here; begin checks it.
//
// The result of one of gorgonia's own operations, the sums of gradients, may lie
// in the memory of an operand, so it prolongs the operand's life to its own.
func (g *Graph) layOut() error {
	sorted, err := gorgonia.Sort(g.expr)
	if err != nil {
		return fmt.Errorf("nn: sorting operations: %w", err)
	}
	slices.Reverse(sorted)
	position := make(map[*Node]int, len(sorted))
	for i, n := range sorted {
		position[n] = i
	}
	kept := map[*Node]bool{}
	for _, n := range append(append(gorgonia.Nodes{}, g.outputs...), g.grads...) {
		kept[n] = true
	}
	var death func(n *Node) int
	death = func(n *Node) int {
		if kept[n] {
			return forever
		}
		last := position[n]
		for it := g.expr.To(n.ID()); it.Next(); {
			reader := it.Node().(*Node)
			switch reader.Op().(type) {
			case *pick: // takes another buffer of the same operation
			case *fused, *backward:
				last = max(last, position[reader])
			default:
				last = max(last, death(reader))
			}
		}
		return last
	}
	var all []*lifetime
	for i, n := range sorted {
		switch o := n.Op().(type) {
		case *fused:
			o.position = i
			if o.rank > 0 {
				all = append(all, &lifetime{buffer: &o.out, birth: i, death: death(n)})
			}
		case *backward:
			o.position = i
			all = append(all, &lifetime{buffer: &o.din[o.first], birth: i, death: death(n)})
		case *pick:
			all = append(all, &lifetime{buffer: &o.of.din[o.index], birth: o.of.position, death: death(n)})
		}
	}
	g.slots = assign(all)
	return nil
}

// assign gives each lifetime the smallest slot that is free and large enough, or
// a new one.
func assign(all []*lifetime) []*slot {
	slices.SortStableFunc(all, func(a, b *lifetime) int {
		if c := cmp.Compare(a.birth, b.birth); c != 0 {
			return c
		}
		return cmp.Compare(b.buffer.size(), a.buffer.size())
	})
	var slots []*slot
	for _, l := range all {
		var best *slot
		for _, s := range slots {
			if s.until < l.birth && s.size >= l.buffer.size() && (best == nil || s.size < best.size) {
				best = s
			}
		}
		if best == nil {
			best = &slot{size: l.buffer.size()}
			slots = append(slots, best)
		}
		best.until = l.death
		l.buffer.slot = best
	}
	return slots
}

// begin panics unless operations run in the order the memory was laid out for.
func (g *Graph) begin(position int, name string) {
	if position <= g.position {
		panic(fmt.Sprintf("nn: operation %s at position %d runs after position %d", name, position, g.position))
	}
	g.position = position
}
