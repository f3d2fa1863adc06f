package times

import "placer/graph"

// Instance is a graph with the times of its ops, as one file gives both.
type Instance struct {
	Graph *graph.Graph
	Times *Table
}

// Build builds the graph of b and the table that goes with it: t, whose Seconds are
// given in the order in which the ops were added and whose Transfer, where there
// is one, in the order of their tensors. It keeps t's slices of models.
func Build(b *graph.Builder, t Table) (*Instance, error) {
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	t.GraphHash = g.Hash()
	for k := range t.Models {
		m := &t.Models[k]
		given := m.Seconds
		m.Seconds = make([]float64, 0, len(given))
		for _, i := range b.Order() {
			m.Seconds = append(m.Seconds, given[i])
		}
	}
	if given := t.Transfer; given != nil {
		t.Transfer = make([]float64, 0, len(given))
		for _, i := range b.Order() {
			first, end := b.OutputsAt(i)
			t.Transfer = append(t.Transfer, given[first:end]...)
		}
	}
	x := &Instance{g, &t}
	return x, x.Check()
}

// Check reports what is wrong with the times of the graph's ops.
func (x *Instance) Check() error { return x.Times.Check(x.Graph) }
