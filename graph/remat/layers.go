package remat

import (
	"placer/graph"
	"placer/graph/fuse"
)

// Layers are the layers of a graph whose activations can be given up.
type Layers struct {
	g *graph.Graph
	// Of is the layer of each op, from 1, or 0, [N]: the graph's own, or where it has
	// none stretches of the forward pass (see stretches).
	Of []int32
	// Saved lists, for each layer, [L+1], the tensors of its forward pass that its own
	// gradients read, and no forward op of another layer: what is held from one pass to
	// the other for the layer alone.
	Saved [][]graph.TensorID
	// gates are ops whose end says that the gradients of a layer are about to run: what
	// passes gradients to it, [L+1].
	gates [][]graph.OpID
}

// Find returns the layers of g.
func Find(g *graph.Graph) *Layers {
	l := &Layers{g: g, Of: layersOf(g)}
	last := int32(0)
	for _, k := range l.Of {
		last = max(last, k)
	}
	l.Saved, l.gates = make([][]graph.TensorID, last+1), make([][]graph.OpID, last+1)
	shared := l.shared()
	for i := range graph.OpID(g.NumOps()) {
		k := l.Of[i]
		if k == 0 || g.Op(i).Phase != graph.Forward || holds(g, i) {
			continue
		}
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			if x := g.Tensor(t); !x.Resident && x.Bytes > 0 && !shared[t] && l.readLater(t, k) {
				l.Saved[k] = append(l.Saved[k], t)
			}
		}
	}
	for k := range l.Saved {
		if len(l.Saved[k]) > 0 {
			l.gates[k] = l.gatesOf(int32(k))
		}
	}
	return l
}

// Last returns the highest layer.
func (l *Layers) Last() int32 { return int32(len(l.Saved) - 1) }

// Can reports whether layer k has activations that can be given up: it saves some, and
// gradients come to it from elsewhere, so that there is a time between.
func (l *Layers) Can(k int32) bool {
	return k > 0 && int(k) < len(l.Saved) && len(l.Saved[k]) > 0 && len(l.gates[k]) > 0
}

// holds reports whether op i holds memory, is fed, or has an effect: it is not
// computed again.
func holds(g *graph.Graph, i graph.OpID) bool {
	o := g.Op(i)
	f, _ := graph.FactsOf(o.Kind)
	switch f.Class {
	case graph.ClassInput, graph.ClassVariable, graph.ClassConst, graph.ClassUpdate:
		return true
	}
	return o.Resident > 0 || o.Params > 0
}

// shared reports, for each tensor, [T], whether forward ops of another layer than its
// own read it, by its own name or that of a view.
func (l *Layers) shared() []bool {
	shared := make([]bool, l.g.NumTensors())
	view := fuse.Views(l.g)
	for k := len(shared) - 1; k >= 0; k-- { // views before what they are of
		t := graph.TensorID(k)
		p := l.g.Tensor(t).Producer
		for _, v := range l.g.Consumers(t) {
			if l.g.Op(v).Phase == graph.Forward && l.Of[v] != l.Of[p] {
				shared[t] = true
			}
		}
		if x := view[t]; x >= 0 && shared[t] {
			shared[x] = true
		}
	}
	return shared
}

// readLater reports whether gradients of layer k read tensor t.
func (l *Layers) readLater(t graph.TensorID, k int32) bool {
	for _, v := range l.g.Consumers(t) {
		if l.Of[v] == k && l.g.Op(v).Phase == graph.Backward {
			return true
		}
	}
	return false
}

// gatesOf returns the backward ops of other layers that ops of layer k's backward pass
// read, as far as they do not follow from these.
func (l *Layers) gatesOf(k int32) (gates []graph.OpID) {
	g := l.g
	follows := make([]bool, g.NumOps()) // from a gradient of the layer that reads what it saves
	saved := map[graph.TensorID]bool{}
	for _, t := range l.Saved[k] {
		saved[t] = true
	}
	seen := map[graph.OpID]bool{}
	for i := range graph.OpID(g.NumOps()) {
		own := l.Of[i] == k && g.Op(i).Phase == graph.Backward
		for p := range g.Predecessors(i) {
			follows[i] = follows[i] || follows[p]
		}
		for _, t := range g.Inputs(i) {
			follows[i] = follows[i] || own && saved[t]
			p := g.Tensor(t).Producer
			if own && !seen[p] && l.Of[p] != k && g.Op(p).Phase == graph.Backward && !follows[p] && !holds(g, p) && len(g.Inputs(p)) > 0 {
				seen[p] = true
				gates = append(gates, p)
			}
		}
	}
	return gates
}

// layersOf returns the annotated layers, or stretches where no op has one.
func layersOf(g *graph.Graph) []int32 {
	of := make([]int32, g.NumOps())
	annotated := false
	for i := range of {
		of[i] = g.Op(graph.OpID(i)).Layer
		annotated = annotated || of[i] > 0
	}
	if !annotated {
		stretches(g, of)
	}
	return of
}

// mostStretches bounds the layers of a graph that states none.
const mostStretches = 64

// stretches cuts the forward pass, in topological order, into as many stretches of
// equal bytes as the square root of its ops, 64 at most. Gradients belong to what they
// are gradients of.
func stretches(g *graph.Graph, of []int32) {
	forward, total := 0, 0.0
	made := func(i graph.OpID) (bytes float64) {
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			if x := g.Tensor(t); !x.Resident {
				bytes += float64(x.Bytes)
			}
		}
		return bytes
	}
	for i := range graph.OpID(len(of)) {
		if g.Op(i).Phase == graph.Forward {
			forward++
			total += made(i)
		}
	}
	n := 1
	for n < mostStretches && n*n < forward {
		n++
	}
	before := 0.0
	for i := range graph.OpID(len(of)) {
		switch o := g.Op(i); {
		case o.Phase == graph.Forward && total > 0:
			of[i] = 1 + int32(min(float64(n-1), float64(n)*before/total))
			before += made(i)
		case o.Phase == graph.Backward && o.Forward != graph.None:
			of[i] = of[o.Forward]
		}
	}
}
