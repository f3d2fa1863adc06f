package graph

import (
	"iter"
	"slices"

	"placer/units"
)

// Graph is one step of a model. It never changes once built, so goroutines may
// share it. Slices that its methods return must not be modified.
type Graph struct {
	name    string
	ops     []Op     // [N]
	tensors []Tensor // [T]
	outAt   []int32  // [N+1]: tensors of op i are outAt[i]..outAt[i+1]
	inAt    []int32  // [N+1] into in
	in      []TensorID
	ctlAt   []int32       // [N+1] into ctl
	ctl     []OpID        // control predecessors
	useAt   []int32       // [T+1] into use
	use     []OpID        // consumers, ascending, each once
	hash    func() string // computed when first asked for
}

// Name returns the graph's name.
func (g *Graph) Name() string { return g.name }

// Named returns g under another name, which is not part of its hash.
func (g *Graph) Named(name string) *Graph {
	named := *g
	named.name = name
	return &named
}

// NumOps returns N.
func (g *Graph) NumOps() int { return len(g.ops) }

// NumTensors returns T.
func (g *Graph) NumTensors() int { return len(g.tensors) }

// NumEdges returns the number of data edges: inputs counted over all ops.
func (g *Graph) NumEdges() int { return len(g.in) }

// NumControl returns the number of control dependencies.
func (g *Graph) NumControl() int { return len(g.ctl) }

// Op returns op i, read-only.
func (g *Graph) Op(i OpID) *Op { return &g.ops[i] }

// Tensor returns tensor t, read-only.
func (g *Graph) Tensor(t TensorID) *Tensor { return &g.tensors[t] }

// Inputs returns the tensors that op i reads, as listed: one may occur twice.
func (g *Graph) Inputs(i OpID) []TensorID { return g.in[g.inAt[i]:g.inAt[i+1]] }

// Outputs returns the half-open range of the tensors that op i makes.
func (g *Graph) Outputs(i OpID) (first, end TensorID) {
	return TensorID(g.outAt[i]), TensorID(g.outAt[i+1])
}

// Control returns the ops that must end before op i starts and pass it no data.
func (g *Graph) Control(i OpID) []OpID { return g.ctl[g.ctlAt[i]:g.ctlAt[i+1]] }

// Predecessors yields the ops that make what op i reads, as listed, then those that it
// waits for by control dependency.
func (g *Graph) Predecessors(i OpID) iter.Seq[OpID] {
	return func(yield func(OpID) bool) {
		for _, t := range g.Inputs(i) {
			if !yield(g.tensors[t].Producer) {
				return
			}
		}
		for _, p := range g.Control(i) {
			if !yield(p) {
				return
			}
		}
	}
}

// Consumers returns the ops that read tensor t, ascending, each once.
func (g *Graph) Consumers(t TensorID) []OpID { return g.use[g.useAt[t]:g.useAt[t+1]] }

// Hash returns the hex SHA-256 of everything that Check sees except the graph's
// name and the modules of its ops: equal hashes mean equal graphs. The first call computes
// it.
func (g *Graph) Hash() string { return g.hash() }

// Layered reports whether some op says of which layer it is.
func (g *Graph) Layered() bool {
	return slices.ContainsFunc(g.ops, func(o Op) bool { return o.Layer > 0 })
}

// FLOPs returns the sum over all ops.
func (g *Graph) FLOPs() (f units.FLOPs) {
	for i := range g.ops {
		f += g.ops[i].FLOPs
	}
	return f
}

// Params returns the number of trainable parameters.
func (g *Graph) Params() (n int64) {
	for i := range g.ops {
		n += g.ops[i].Params
	}
	return n
}

// Resident returns the bytes held for the whole step.
func (g *Graph) Resident() (b units.Bytes) {
	for i := range g.ops {
		b += g.ops[i].Resident
	}
	return b
}
