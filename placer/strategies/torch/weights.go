package torch

import (
	"placer/graph"
	"placer/graph/strategy"
)

// weights says of a model's parameters what reads them in the forward pass.
type weights struct {
	m       *strategy.Model
	readers map[graph.OpID][]graph.OpID // of a parameter, by the op that holds it; ascending
	held    [][]graph.OpID              // [N] parameters that an op of the forward pass reads
}

func weightsOf(m *strategy.Model) *weights {
	g := m.Micro
	w := &weights{m: m, readers: map[graph.OpID][]graph.OpID{}, held: make([][]graph.OpID, g.NumOps())}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Phase != graph.Forward || m.Once(i) && (o.Kind.Class() == graph.ClassMeta || o.Kind == "Cast") {
			continue
		}
		for _, t := range g.Inputs(i) {
			if p := w.of(t); p != graph.None {
				w.held[i] = append(w.held[i], p)
				w.readers[p] = append(w.readers[p], i)
			}
		}
	}
	return w
}

// of returns the op that holds the parameter that tensor t is, or is a view or another type of;
// None where it is of none.
func (w *weights) of(t graph.TensorID) graph.OpID {
	g := w.m.Micro
	for i := g.Tensor(t).Producer; w.m.Once(i) && g.Op(i).Phase != graph.Update; {
		in := g.Inputs(i)
		switch o := g.Op(i); {
		case o.Params > 0:
			return i
		case len(in) == 0 || o.Kind.Class() != graph.ClassMeta && o.Kind != "Cast":
			return graph.None
		}
		i = g.Tensor(in[0]).Producer
	}
	return graph.None
}
