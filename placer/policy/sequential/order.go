package sequential

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/unit"
)

// A step of the decision process, in order: decide a unit, because node runs
// next or because node reads what the unit holds; or run node.
type step struct {
	node graph.OpID
	unit int32 // to decide, or none: run node
}

// rank finds the longest way from each node to the end, in seconds, with mean op times and,
// on every edge, the mean time of a transfer (HEFT); that from the begin to its start, with
// the op times of the first device; and the order of nodes.
func (c *coarse) rank() {
	g, devices := c.nodes.Graph, float64(len(c.seconds))
	n := g.NumOps()
	c.up, c.down = make([]float64, n), make([]float64, n)
	for v := n - 1; v >= 0; v-- {
		for _, seconds := range c.seconds {
			c.up[v] += seconds[v] / devices
		}
		for _, t := range g.Inputs(graph.OpID(v)) {
			x := g.Tensor(t)
			c.up[x.Producer] = max(c.up[x.Producer], c.up[v]+c.wire.meanTransfer(x.Bytes))
		}
		for _, q := range g.Control(graph.OpID(v)) {
			c.up[q] = max(c.up[q], c.up[v])
		}
	}
	for v := range c.down {
		for _, t := range g.Inputs(graph.OpID(v)) {
			x := g.Tensor(t)
			c.down[v] = max(c.down[v], c.down[x.Producer]+c.seconds[0][x.Producer]+c.wire.meanTransfer(x.Bytes))
		}
		for _, q := range g.Control(graph.OpID(v)) {
			c.down[v] = max(c.down[v], c.down[q]+c.seconds[0][q])
		}
	}
	c.order = make([]graph.OpID, n)
	for v := range c.order {
		c.order[v] = graph.OpID(v)
	}
	slices.SortFunc(c.order, func(a, b graph.OpID) int { return cmp.Or(cmp.Compare(c.up[b], c.up[a]), cmp.Compare(a, b)) })
}

// plan makes the steps: nodes by falling upward rank; variables wait for their first
// reader.
func (s *instance) plan() {
	g := s.nodes.Graph
	s.steps = make([]step, 0, g.NumOps()+s.part.NumUnits())
	decided := make([]bool, s.part.NumUnits())
	decide := func(u int32, v graph.OpID) {
		if !decided[u] {
			decided[u] = true
			s.decisions++
			s.steps = append(s.steps, step{v, u})
		}
	}
	for _, v := range s.order {
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
