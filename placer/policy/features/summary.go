package features

import (
	"math"
	"slices"

	"placer/graph"
	"placer/graph/unit"
)

// row sums what the ops of one unit have.
type row struct {
	seconds, flops, bytes, params, resident float64
	inBytes, outBytes                       float64 // crossing the unit's border, each tensor once
	ops, in, out                            int     // ops, distinct units before and after
	top, topMin, bottom, bottomMax          float64 // longest path before and after, weighted by op time
	phase                                   [3]float64
	variable                                float64 // 1 if the unit holds parameters
	class                                   [graph.NumClasses]float64
	shape                                   [4]float64
	shapes                                  float64
	chainPlace                              float64 // 0..1 within the unit's chain
	chainLength                             int     // units in the chain
	variableOrder                           float64 // 0..1: first use of the unit's heaviest variable among all variables
}

type summary struct {
	rows  []row
	total float64 // sum of op times
	span  float64 // longest path
}

func summarise(g *graph.Graph, p, chain *unit.Partition, seconds []float64) *summary {
	s := &summary{rows: make([]row, p.NumUnits())}
	top, bottom := levels(g, seconds)
	for i := range seconds {
		s.total += seconds[i]
		s.span = math.Max(s.span, top[i]+bottom[i])
	}
	for u := range s.rows {
		s.rows[u].topMin = math.Inf(1)
	}
	for i := range g.NumOps() {
		s.addOp(g, graph.OpID(i), &s.rows[p.Of[i]], seconds[i], top[i], bottom[i])
	}
	s.borders(g, p)
	s.chains(p, chain)
	s.variables(g, p, top)
	return s
}

func (s *summary) addOp(g *graph.Graph, i graph.OpID, r *row, seconds, top, bottom float64) {
	o := g.Op(i)
	r.ops++
	r.seconds += seconds
	r.flops += float64(o.FLOPs)
	r.bytes += float64(o.Bytes)
	r.params += float64(o.Params)
	r.resident += float64(o.Resident)
	r.top += top * seconds
	r.bottom += bottom * seconds
	r.topMin = math.Min(r.topMin, top)
	r.bottomMax = math.Max(r.bottomMax, bottom)
	r.phase[o.Phase] += seconds
	r.class[o.Kind.Class()]++
	if o.Params > 0 {
		r.variable = 1
	}
	first, end := g.Outputs(i)
	for t := first; t < end; t++ {
		shape := g.Tensor(t).Shape
		if len(shape) == 0 {
			continue
		}
		r.shapes++
		for d := range min(len(shape), 4) {
			r.shape[d] += math.Log1p(float64(shape[len(shape)-1-d])) / 4
		}
	}
}

// borders counts bytes and units across the units' borders.
func (s *summary) borders(g *graph.Graph, p *unit.Partition) {
	var to []int32
	type pair struct{ from, to int32 }
	var pairs []pair
	for t := range g.NumTensors() {
		x := g.Tensor(graph.TensorID(t))
		from := p.Of[x.Producer]
		to = to[:0]
		for _, c := range g.Consumers(graph.TensorID(t)) {
			if u := p.Of[c]; u != from && !slices.Contains(to, u) {
				to = append(to, u)
			}
		}
		if len(to) > 0 {
			s.rows[from].outBytes += float64(x.Bytes)
		}
		for _, u := range to {
			s.rows[u].inBytes += float64(x.Bytes)
			pairs = append(pairs, pair{from, u})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if a.from != b.from {
			return int(a.from - b.from)
		}
		return int(a.to - b.to)
	})
	for _, e := range slices.Compact(pairs) {
		s.rows[e.from].out++
		s.rows[e.to].in++
	}
}

// chains places each unit within its chain.
func (s *summary) chains(p, c *unit.Partition) {
	of := make([]int32, p.NumUnits())
	count := make([]int, c.NumUnits())
	place := make([]int, p.NumUnits())
	for u, ops := range p.Ops {
		of[u] = c.Of[ops[0]]
		place[u] = count[of[u]]
		count[of[u]]++
	}
	for u := range s.rows {
		n := count[of[u]]
		s.rows[u].chainLength = n
		s.rows[u].chainPlace = (float64(place[u]) + 0.5) / float64(n)
	}
}

// variables orders the units that hold parameters by their first use and gives
// every unit the place of the heaviest one it reads or holds.
func (s *summary) variables(g *graph.Graph, p *unit.Partition, top []float64) {
	firstUse := make([]float64, len(s.rows))
	for u := range firstUse {
		firstUse[u] = math.Inf(1)
	}
	heaviest := make([]int32, len(s.rows))
	for u := range heaviest {
		heaviest[u] = -1
		if s.rows[u].variable == 1 {
			heaviest[u] = int32(u)
		}
	}
	for t := range g.NumTensors() {
		from := p.Of[g.Tensor(graph.TensorID(t)).Producer]
		if s.rows[from].variable == 0 || !g.Tensor(graph.TensorID(t)).Resident {
			continue
		}
		for _, c := range g.Consumers(graph.TensorID(t)) {
			firstUse[from] = math.Min(firstUse[from], top[c])
			u := p.Of[c]
			if v := heaviest[u]; u != from && s.rows[u].variable == 0 && (v < 0 || s.rows[from].params > s.rows[v].params) {
				heaviest[u] = from
			}
		}
	}
	var order []int
	for u := range s.rows {
		if s.rows[u].variable == 1 {
			order = append(order, u)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case firstUse[a] < firstUse[b]:
			return -1
		case firstUse[a] > firstUse[b]:
			return 1
		}
		return 0
	})
	at := make([]float64, len(s.rows))
	for k, u := range order {
		at[u] = (float64(k) + 0.5) / float64(len(order))
	}
	for u := range s.rows {
		if v := heaviest[u]; v >= 0 {
			s.rows[u].variableOrder = at[v]
		}
	}
}

// TopLevels returns, per op, the longest path before it, without transfers, [N].
func TopLevels(g *graph.Graph, seconds []float64) []float64 {
	top, _ := levels(g, seconds)
	return top
}

// levels returns, per op, the longest path before it and the longest path from
// its start to the end, without transfers, [N] each.
func levels(g *graph.Graph, seconds []float64) (top, bottom []float64) {
	n := g.NumOps()
	top, bottom = make([]float64, n), make([]float64, n)
	for i := range n {
		for q := range g.Predecessors(graph.OpID(i)) {
			top[i] = math.Max(top[i], top[q]+seconds[q])
		}
	}
	for i := n - 1; i >= 0; i-- {
		bottom[i] += seconds[i]
		for q := range g.Predecessors(graph.OpID(i)) {
			bottom[q] = math.Max(bottom[q], bottom[i])
		}
	}
	return top, bottom
}
