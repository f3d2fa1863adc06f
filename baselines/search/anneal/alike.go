package anneal

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// alike groups units of the op level that are alike: those of the cells of one chain that begin
// with an op of the same kind, phase and time, the first of a cell with the first of others, the
// second with the second. So an op of one time step is in the group of the same op of the others.
// It returns the group of each unit and how many groups there are.
func alike(p *plan.Problem) (groupOf []int32, groups int) {
	type class struct {
		chain   int32
		kind    graph.Kind
		phase   graph.Phase
		seconds float64
	}
	type key struct {
		class
		nth int // of its class in its cell
	}
	type inCell struct {
		class
		cell int32
	}
	cells, chains := p.Units.Parents(unit.Op, unit.Cell), p.Units.Parents(unit.Op, unit.Chain)
	seconds := p.Evaluator.OpSeconds(0)
	index, seen := map[key]int32{}, map[inCell]int{}
	groupOf = make([]int32, len(cells))
	for u, ops := range p.Units.Levels[unit.Op].Ops {
		o := p.Graph.Op(ops[0])
		c := class{chains[u], o.Kind, o.Phase, seconds[ops[0]]}
		k := key{c, seen[inCell{c, cells[u]}]}
		seen[inCell{c, cells[u]}]++
		g, known := index[k]
		if !known {
			g = int32(len(index))
			index[k] = g
		}
		groupOf[u] = g
	}
	return groupOf, len(index)
}
