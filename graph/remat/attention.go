package remat

import (
	"errors"
	"strings"

	"placer/graph"
)

// ErrNoAttention says that a graph has no core of attention that holds anything.
var ErrNoAttention = errors.New("no attention stores its scores for the backward pass, so that recompute=selective has nothing to recompute; recompute takes whole layers")

// Attention returns g with the cores of its attention computed again before their
// gradients, all else kept: selective recomputation (Korthikanti et al., arXiv:2205.05198,
// section 5). A core is found by structure: a product of two activations (scores), another
// that comes of it (with values), and what lies between, with the random masks that nothing
// else reads. Of a core only what gradients read is computed again, which the last product
// is not; Megatron-LM runs it too.
func Attention(g *graph.Graph) (*Derived, error) {
	inside, readers := cores(g)
	d := newDeriver(g)
	some := false
	for _, c := range inside {
		r := region{inside: func(i graph.OpID) bool { return c[i] }, reads: func(v graph.OpID) bool { return g.Op(v).Phase == graph.Backward }}
		for i := range graph.OpID(g.NumOps()) {
			if !c[i] {
				continue
			}
			for t, end := g.Outputs(i); t < end; t++ {
				if readers[t] {
					r.saved = append(r.saved, t)
				}
			}
		}
		if r.gates = gatesOfReaders(g, r.saved); len(r.gates) > 0 {
			d.recompute(r)
			some = true
		}
	}
	if !some {
		return nil, ErrNoAttention
	}
	return d.derived()
}

// cores returns the ops of each core, and for each tensor, [T], whether gradients read it.
func cores(g *graph.Graph) (inside []map[graph.OpID]bool, readers []bool) {
	readers = make([]bool, g.NumTensors())
	for t := range readers {
		for _, v := range g.Consumers(graph.TensorID(t)) {
			readers[t] = readers[t] || g.Op(v).Phase == graph.Backward
		}
	}
	fixed, chance := origins(g)
	pair := func(i graph.OpID) bool {
		o, in := g.Op(i), g.Inputs(i)
		return o.Phase == graph.Forward && !o.GEMM.IsZero() && len(in) > 1 && !fixed[g.Tensor(in[0]).Producer] && !fixed[g.Tensor(in[1]).Producer]
	}
	taken := map[graph.OpID]bool{}
	for i := range graph.OpID(g.NumOps()) {
		if !pair(i) || taken[i] {
			continue
		}
		c := between(g, i, pair)
		for v := range c {
			taken[v] = true
		}
		if len(c) > 0 {
			addMasks(g, c, chance)
			inside = append(inside, c)
		}
	}
	return inside, readers
}

// origins reports of each op, [N], whether it computes of what is held alone, and whether it
// comes of a random number.
func origins(g *graph.Graph) (fixed, chance []bool) {
	fixed, chance = make([]bool, g.NumOps()), make([]bool, g.NumOps())
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		chance[i] = strings.HasPrefix(string(o.Kind), "Random") || o.Kind == "Bernoulli"
		some, all := false, true
		for p := range g.Predecessors(i) {
			some, all = true, all && fixed[p]
			chance[i] = chance[i] || chance[p]
		}
		fixed[i] = holds(g, i) && o.Kind.Class() != graph.ClassInput || some && all && !chance[i]
	}
	return fixed, chance
}

// between returns product a and the ops on the ways from it to further products of two
// activations, these left out unless they lead to others; none where no way is without a product
// with weights.
func between(g *graph.Graph, a graph.OpID, pair func(graph.OpID) bool) map[graph.OpID]bool {
	const most = 4096
	leads := map[graph.OpID]bool{} // to a product
	seen := map[graph.OpID]bool{}
	var visit func(i graph.OpID) bool
	visit = func(i graph.OpID) bool {
		if seen[i] {
			return leads[i]
		}
		seen[i] = true
		for t, end := g.Outputs(i); t < end; t++ {
			for _, v := range g.Consumers(t) {
				o := g.Op(v)
				if o.Phase != graph.Forward || !o.GEMM.IsZero() && !pair(v) || len(seen) > most {
					continue
				}
				if visit(v) || pair(v) {
					leads[i] = true
				}
			}
		}
		return leads[i]
	}
	visit(a)
	for i := range leads {
		if !leads[i] {
			delete(leads, i)
		}
	}
	return leads
}

// addMasks adds to core c what comes of random numbers and goes nowhere else.
func addMasks(g *graph.Graph, c map[graph.OpID]bool, chance []bool) {
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- {
		if o := g.Op(i); c[i] || !chance[i] || o.Phase != graph.Forward || !o.GEMM.IsZero() || holds(g, i) {
			continue
		}
		some, all := false, true
		for t, end := g.Outputs(i); t < end; t++ {
			for _, v := range g.Consumers(t) {
				if g.Op(v).Phase == graph.Forward {
					some, all = true, all && c[v]
				}
			}
		}
		if some && all {
			c[i] = true
		}
	}
}

// gatesOfReaders returns the backward ops that gradients which read the saved tensors read
// besides, as far as they do not follow from such gradients: their end says that the
// gradients are about to run.
func gatesOfReaders(g *graph.Graph, saved []graph.TensorID) (gates []graph.OpID) {
	reader, follows, seen := map[graph.OpID]bool{}, map[graph.OpID]bool{}, map[graph.OpID]bool{}
	first := graph.OpID(g.NumOps())
	for _, t := range saved {
		for _, v := range g.Consumers(t) {
			if g.Op(v).Phase == graph.Backward {
				reader[v] = true
				first = min(first, v)
			}
		}
	}
	for i := first; int(i) < g.NumOps(); i++ {
		follows[i] = reader[i]
		for p := range g.Predecessors(i) {
			follows[i] = follows[i] || follows[p]
		}
		if !reader[i] {
			continue
		}
		for p := range g.Predecessors(i) {
			if g.Op(p).Phase == graph.Backward && !follows[p] && !seen[p] && !holds(g, p) && len(g.Inputs(p)) > 0 {
				seen[p] = true
				gates = append(gates, p)
			}
		}
	}
	return gates
}
