package sequential

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/units"
)

// A step of the decision process, in order: decide a unit, because node runs
// next or because node reads what the unit holds; or run node.
type step struct {
	node graph.OpID
	unit int32 // to decide, or none: run node
}

// meanTransfer returns the time that b bytes take between two devices drawn at
// random, in seconds.
func (s *instance) meanTransfer(b units.Bytes) float64 {
	return s.transfer(b) * float64(s.d-1) / float64(s.d)
}

// upwardRanks returns the longest way from each node to the end, [V], in seconds,
// with mean op times and, on every edge, the mean time of a transfer (HEFT).
func (s *instance) upwardRanks() []float64 {
	g := s.nodes.Graph
	up := make([]float64, g.NumOps())
	for v := g.NumOps() - 1; v >= 0; v-- {
		for d := range s.d {
			up[v] += s.seconds[d][v] / float64(s.d)
		}
		for _, t := range g.Inputs(graph.OpID(v)) {
			x := g.Tensor(t)
			up[x.Producer] = max(up[x.Producer], up[v]+s.meanTransfer(x.Bytes))
		}
		for _, q := range g.Control(graph.OpID(v)) {
			up[q] = max(up[q], up[v])
		}
	}
	return up
}

// downwardRanks returns the longest way from the begin to each node's start, [V], in
// seconds, with the op times of the first device.
func (s *instance) downwardRanks() []float64 {
	g := s.nodes.Graph
	down := make([]float64, g.NumOps())
	for v := range down {
		for _, t := range g.Inputs(graph.OpID(v)) {
			x := g.Tensor(t)
			down[v] = max(down[v], down[x.Producer]+s.seconds[0][x.Producer]+s.meanTransfer(x.Bytes))
		}
		for _, q := range g.Control(graph.OpID(v)) {
			down[v] = max(down[v], down[q]+s.seconds[0][q])
		}
	}
	return down
}

// order makes the steps: nodes by falling upward rank, [V]; variables wait for their
// first reader.
func (s *instance) order(up []float64) {
	g := s.nodes.Graph
	order := make([]graph.OpID, g.NumOps())
	for v := range order {
		order[v] = graph.OpID(v)
	}
	slices.SortStableFunc(order, func(a, b graph.OpID) int { return cmp.Compare(up[b], up[a]) })
	decided := make([]bool, s.part.NumUnits())
	decide := func(u int32, v graph.OpID) {
		if !decided[u] {
			decided[u] = true
			s.decisions++
			s.steps = append(s.steps, step{v, u})
		}
	}
	for _, v := range order {
		u := s.unit[v]
		if !decided[u] && s.is(u, unit.Weights) && len(g.Inputs(v)) == 0 {
			continue // a variable: it is ready everywhere, its first reader decides when
		}
		decide(u, v)
		for _, t := range g.Inputs(v) {
			decide(s.unit[g.Tensor(t).Producer], v)
		}
		s.steps = append(s.steps, step{v, none})
	}
	for u, ops := range s.part.Ops {
		decide(int32(u), graph.OpID(s.nodes.Of[ops[0]]))
	}
}

// decided returns the units in the order of their decisions, [T].
func (s *instance) decided() []int32 {
	order := make([]int32, 0, s.decisions)
	for _, x := range s.steps {
		if x.unit != none {
			order = append(order, x.unit)
		}
	}
	return order
}
