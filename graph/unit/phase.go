package unit

import (
	"math"
	"slices"

	"placer/graph"
)

// phase is when in the step an op of a unit runs, told by visits of other units: the ops of
// one phase of a unit are a node of a coarsened graph. What holds for the edges of ops keeps
// these nodes from forming a cycle: depth rises along an edge between units and falls along
// none; along one inside a unit and depth height rises nowhere; and where both are equal
// nothing is missing from what the reader waits for.
type phase struct {
	depth  int32  // the largest number of changes of unit on a path to the op
	height int32  // the same on a path from it to the end
	after  uint64 // hash of the set of nodes of the depth before that it waits for
}

// depths returns the phases of the ops of g, [N], by depth alone, and with ops delayed that
// could run early for no other unit.
func depths(g *graph.Graph, p *Partition, constant []bool) []phase {
	x := deep(g, p, constant)
	delay(g, p, constant, x)
	return x
}

// deep returns phases, [N], that tell depth alone.
func deep(g *graph.Graph, p *Partition, constant []bool) []phase {
	x := make([]phase, g.NumOps())
	for i := range x {
		for q := range g.Predecessors(graph.OpID(i)) {
			if !constant[q] {
				x[i].depth = max(x[i].depth, x[q].depth+changes(p, q, i))
			}
		}
	}
	return x
}

// changes returns 1 for an edge from op q to op i that changes the unit, and 0 for one that
// does not.
func changes(p *Partition, q graph.OpID, i int) int32 {
	if p.Of[q] != p.Of[i] {
		return 1
	}
	return 0
}

// delay deepens ops, products excepted, that work for their own unit alone to the
// depth of their first consumer: shape arithmetic, random masks. Depth still grows
// along every edge from unit to unit.
func delay(g *graph.Graph, p *Partition, constant []bool, x []phase) {
	waited := make([]bool, len(x)) // some op waits for it by control dependency
	for i := len(x) - 1; i >= 0; i-- {
		id := graph.OpID(i)
		for _, q := range g.Control(id) {
			waited[q] = true
		}
		if constant[i] || waited[i] {
			continue
		}
		to, own := int32(-1), true
		first, end := g.Outputs(id)
		for t := first; t < end; t++ {
			for _, q := range g.Consumers(t) {
				own = own && p.Of[q] == p.Of[i]
				if to < 0 || x[q].depth < to {
					to = x[q].depth
				}
			}
		}
		if !own || to <= x[i].depth {
			continue
		}
		if k := g.Op(id).Kind.Class(); k != graph.ClassGEMM && k != graph.ClassConv {
			x[i].depth = to
		}
	}
}

// mostAwaited is the largest set of nodes that phases are told apart by. All larger ones are
// many, and so is what is added to it.
const (
	mostAwaited = 16
	many        = math.MaxUint64
)

// visits returns the phases of the ops of g, [N], by all that they wait for and that waits
// for them.
func visits(g *graph.Graph, p *Partition, constant []bool) []phase {
	x := deep(g, p, constant)
	for i := len(x) - 1; i >= 0; i-- {
		for q := range g.Predecessors(graph.OpID(i)) {
			x[q].height = max(x[q].height, x[i].height+changes(p, q, i))
		}
	}
	sets := make([][]uint64, len(x)) // of nodes, by hash, ascending
	for i := range x {
		for q := range g.Predecessors(graph.OpID(i)) {
			switch {
			case constant[q]:
			case p.Of[q] != p.Of[i] && x[q].depth == x[i].depth-1:
				sets[i] = union(sets[i], []uint64{x[q].hash(p.Of[q])})
			case p.Of[q] == p.Of[i] && x[q].depth == x[i].depth:
				sets[i] = union(sets[i], sets[q])
			}
		}
		for _, h := range sets[i] {
			x[i].after = mix(x[i].after, h)
		}
	}
	return x
}

// hash returns that of the node of a unit.
func (x phase) hash(unit int32) uint64 {
	return mix(mix(mix(x.after, uint64(unit)), uint64(x.depth)), uint64(x.height))
}

// union returns the union of two ascending sets, which it may share but does not change.
func union(a, b []uint64) []uint64 {
	if len(b) == 0 || slices.Equal(a, b) {
		return a
	}
	if len(a) == 0 {
		return b
	}
	if a[len(a)-1] == many || b[len(b)-1] == many {
		return []uint64{many}
	}
	u := slices.Concat(a, b)
	slices.Sort(u)
	if u = slices.Compact(u); len(u) > mostAwaited {
		return []uint64{many}
	}
	return u
}
