package transfer

import (
	"math"

	"placer/graph"
	"placer/graph/unit"
)

// staticNames are the columns of a unit that no decision changes. None names an
// op kind or carries a unit of measure: what they say holds for graphs of any
// family and size.
var staticNames = []string{
	"share", "load", "forward", "backward", "weights", "before", "after", "slack", "place",
	"exchange", "exchange_of_load", "resident", "chain_load", "chain_place", "segment_load", "segment_place", "layer_load", "layer_place",
	"contacts", "pieces", "devices_inverse", "parallel", "traffic", "memory", "latency", "cell", "segment",
}

// NumStatic is the number of static columns.
var numStatic = len(staticNames)

// squash keeps the order of x and its scale near 0, and grows like a root.
func squash(x float64) float32 {
	y := math.Sqrt(1+2*math.Abs(x)) - 1
	if x < 0 {
		y = -y
	}
	return float32(max(-widest, min(widest, y)))
}

// widest bounds the squashed columns.
const widest = 5

// describe computes the static columns from the nodes' upward ranks.
func (s *Scene) describe(up []float64) {
	g, n := s.nodes.Graph, s.part.NumUnits()
	down := make([]float64, len(up)) // longest way to the node's start
	span := 1e-12
	for v := range up {
		for _, t := range g.Inputs(graph.OpID(v)) {
			x := g.Tensor(t)
			q := x.Producer
			down[v] = max(down[v], down[q]+s.seconds[0][q]+s.move(x.Bytes)*float64(s.d-1)/float64(s.d))
		}
		for _, q := range g.Control(graph.OpID(v)) {
			down[v] = max(down[v], down[q]+s.seconds[0][q])
		}
		span = max(span, down[v]+up[v])
	}
	before, after, pieces := make([]float64, n), make([]float64, n), make([]float64, n)
	for u := range before {
		before[u] = math.Inf(1)
	}
	for v := range up {
		u := s.unit[v]
		before[u], after[u] = min(before[u], down[v]), max(after[u], up[v])
		pieces[u]++
	}
	var traffic, resident float64
	for u := range n {
		resident += float64(s.resided[u])
		for _, c := range s.near[u] {
			traffic += c.seconds / 2
		}
	}
	var room float64
	for _, m := range s.memory {
		room += float64(m)
	}
	roles := s.problem.Units.Roles[s.level]
	is := func(u int, r unit.Role) float32 {
		if roles != nil && roles[u] == r {
			return 1
		}
		return 0
	}
	at := func(l unit.Level) float32 {
		if s.level == l {
			return 1
		}
		return 0
	}
	d := float64(s.d)
	places := s.places()
	latency := 0.0
	if s.d > 1 {
		l, _ := s.problem.Machine.Transfer(0, 1)
		latency = float64(l)
	}
	for u := range n {
		own := max(s.own[u], 1e-12)
		exchange := 0.0
		for _, c := range s.near[u] {
			exchange += c.seconds
		}
		row := []float32{
			squash(own / s.total * float64(n)), squash(4 * own / s.mean), is(u, unit.Forward), is(u, unit.Backward), is(u, unit.Weights),
			float32(before[u] / span), float32(after[u] / span), float32(1 - (before[u]+after[u])/span), float32(places[u]),
			squash(exchange / own), squash(8 * exchange / s.mean), squash(8 * float64(s.resided[u]) / float64(s.memory[0])),
			squash(s.chain.seconds[s.chain.of[u]] / s.mean), float32(s.chain.place[u]), squash(2 * s.segment.seconds[s.segment.of[u]] / s.mean), float32(s.segment.place[u]),
			squash(s.layer.seconds[s.layer.of[u]] / s.mean), float32(float64(s.layer.of[u]) / float64(max(1, len(s.layer.seconds)-1))),
			float32(math.Log2(1+float64(len(s.near[u]))) / 8), float32(math.Log2(1+pieces[u]) / 8),
			float32(1 / d), squash(s.total / span / d), squash(traffic / s.total), float32(min(2, resident/room)), squash(latency / s.total * float64(n)),
			at(unit.Cell), at(unit.Segment),
		}
		s.static = append(s.static, row...)
	}
}

// places returns, for each unit, the share of the work that is decided before
// it, and half its own, [U].
func (s *Scene) places() []float64 {
	at, sum := make([]float64, s.part.NumUnits()), 0.0
	for _, x := range s.steps {
		if x.unit != none {
			at[x.unit] = (sum + s.own[x.unit]/2) / s.total
			sum += s.own[x.unit]
		}
	}
	return at
}
