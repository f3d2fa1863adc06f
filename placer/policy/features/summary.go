package features

import (
	"cmp"
	"math"
	"slices"

	"placer/graph"
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

// summary sums the units of a Source.
type summary struct {
	Source
	rows        []row     // [U]
	total       float64   // sum of op times
	span        float64   // longest path
	top, bottom []float64 // [N] of levels
}

func summarise(of Source) *summary {
	s := &summary{Source: of, rows: make([]row, of.Units.NumUnits())}
	s.top, s.bottom = levels(of.Graph, of.Seconds)
	for i, x := range of.Seconds {
		s.total += x
		s.span = math.Max(s.span, s.top[i]+s.bottom[i])
	}
	for u := range s.rows {
		s.rows[u].topMin = math.Inf(1)
	}
	for i := range of.Graph.NumOps() {
		s.addOp(graph.OpID(i))
	}
	s.borders()
	s.chains()
	s.variables()
	return s
}

// addOp adds op i to the row of its unit.
func (s *summary) addOp(i graph.OpID) {
	g, r := s.Graph, &s.rows[s.Units.Of[i]]
	seconds, top, bottom := s.Seconds[i], s.top[i], s.bottom[i]
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
func (s *summary) borders() {
	g, p := s.Graph, s.Units
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
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for _, e := range slices.Compact(pairs) {
		s.rows[e.from].out++
		s.rows[e.to].in++
	}
}

// chains places each unit within its chain.
func (s *summary) chains() {
	p, c := s.Units, s.Chain
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
