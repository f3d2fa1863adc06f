package conformance

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// each calls f with every placement of p's op-level units.
func each(p *plan.Problem, f func(device []uint8)) {
	units, d := p.Units.Levels[unit.Op], p.Machine.NumDevices()
	device := make([]uint8, p.Graph.NumOps())
	total := 1
	for range units.NumUnits() {
		total *= d
	}
	for k := range total {
		rest := k
		for _, ops := range units.Ops {
			for _, i := range ops {
				device[i] = uint8(rest % d)
			}
			rest /= d
		}
		f(device)
	}
}

// exhaustive returns the best score of all placements of p's op-level units under
// its scheduler.
func exhaustive(p *plan.Problem) (best plan.Score) {
	first := true
	each(p, func(device []uint8) {
		if s := p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: p.Priority}); first || s.Better(best) {
			best, first = s, false
		}
	})
	return best
}

// overAllOrders returns the best score of all placements of p's op-level units under
// all priorities. Of these it needs only the permutations that no dependency
// contradicts: whatever the priorities, the order in which the ops start is such a
// permutation, and gives the same schedule.
func overAllOrders(p *plan.Problem) (best plan.Score) {
	orders := extensions(p.Graph)
	first := true
	each(p, func(device []uint8) {
		for _, o := range orders {
			if s := p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: o}); first || s.Better(best) {
				best, first = s, false
			}
		}
	})
	return best
}

// extensions returns every priority in which each op comes after all it depends
// on.
func extensions(g *graph.Graph) (all [][]int32) {
	n := g.NumOps()
	needs := make([]uint64, n)
	for i := range n {
		for q := range g.Predecessors(graph.OpID(i)) {
			needs[i] |= 1 << q
		}
	}
	rank := make([]int32, n)
	var grow func(done uint64, r int32)
	grow = func(done uint64, r int32) {
		if int(r) == n {
			all = append(all, append([]int32(nil), rank...))
			return
		}
		for i := range n {
			if done>>i&1 == 0 && needs[i]&^done == 0 {
				rank[i] = r
				grow(done|1<<i, r+1)
			}
		}
	}
	grow(0, 0)
	return all
}
