package families

import (
	"fmt"
	"math/rand/v2"

	"placer/graph"
	"placer/graph/train"
	"placer/units"
)

// netSpec describes a generated net of dense layers.
type netSpec struct {
	depth, batch, width int64   // layers, rows and columns
	work                float64 // scales the work of a layer against what it passes on, as convolutions do
	seed                uint64
}

// styles are the ways to connect a generated net's layers, by name; each returns the
// end of a net that begins with x. They share no builder with the workloads.
var styles = map[string]func(n *net, x graph.TensorID) graph.TensorID{
	"series-parallel": (*net).seriesParallel,
	"towers":          (*net).towers,
	"crossed":         (*net).crossed,
	"skips":           (*net).skips,
}

// randomNet returns the training graph of a generated net of a style.
func randomNet(style string, spec netSpec) (*graph.Graph, error) {
	if spec.depth < 1 || spec.batch < 1 || spec.width < 1 || !(spec.work > 0) {
		return nil, fmt.Errorf("random net: depth %d, batch %d, width %d and work %g must be positive", spec.depth, spec.batch, spec.width, spec.work)
	}
	n := &net{netSpec: spec, b: graph.NewBuilder(style), r: rand.New(rand.NewPCG(spec.seed, 0x5e)), layer: 1}
	x := n.fc(styles[style](n, n.op("Placeholder", "input", nil, n.width)))
	axes := n.b.Op(graph.Op{Name: "axes", Kind: "Const", Forward: graph.None, Bytes: graph.Auto}, nil, graph.Tensor{DType: graph.I32, Shape: graph.Shape{2}, Bytes: graph.Auto})
	n.op("Mean", "loss", []graph.TensorID{x, n.b.Output(axes, 0)}, 0)
	g, err := n.b.Build()
	if err != nil {
		return nil, err
	}
	return train.Derive(g, train.Default())
}

// net is a net being built.
type net struct {
	netSpec
	b     *graph.Builder
	r     *rand.Rand
	layer int32
	dense int64 // layers so far
	ops   int
}

// seriesParallel adds blocks of branches within branches.
func (n *net) seriesParallel(x graph.TensorID) graph.TensorID {
	for n.dense < n.depth {
		x = n.block(x, 2)
		n.layer++
	}
	return x
}

// block adds a chain, or branches joined by a sum, nested at most depth deep.
func (n *net) block(x graph.TensorID, depth int) graph.TensorID {
	if depth == 0 || n.r.IntN(4) == 0 {
		for range 1 + n.r.IntN(3) {
			x = n.fc(x)
		}
		return x
	}
	ends := make([]graph.TensorID, 2+n.r.IntN(4))
	for i := range ends {
		ends[i] = n.block(x, depth-1)
	}
	return n.op("AddN", "join", ends, n.width)
}

// towers adds parallel chains from one input, joined late.
func (n *net) towers(x graph.TensorID) graph.TensorID {
	ends := make([]graph.TensorID, 2+n.r.IntN(4))
	each := max(1, n.depth/int64(len(ends)+1))
	for i := range ends {
		n.layer = 1
		ends[i] = n.chain(x, each)
	}
	return n.chain(n.op("AddN", "join", ends, n.width), each)
}

// crossed adds two stacks, the second reading the first's end.
func (n *net) crossed(x graph.TensorID) graph.TensorID {
	a := n.chain(x, n.depth/2)
	y := n.op("Placeholder", "input", nil, n.width)
	for i := range max(1, n.depth/2) {
		y = n.fc(y)
		if i%2 == 0 {
			y = n.op("AddV2", "cross", []graph.TensorID{y, n.fc(a)}, n.width)
		}
		n.layer++
	}
	return y
}

// skips adds a residual chain whose layers all feed the head.
func (n *net) skips(x graph.TensorID) graph.TensorID {
	var all []graph.TensorID
	for range max(2, n.depth/2) {
		h := n.fc(x)
		all = append(all, n.fc(h))
		x = n.op("AddV2", "residual", []graph.TensorID{x, h}, n.width)
		n.layer++
	}
	return n.fc(n.op("AddN", "sum", all, n.width))
}

// chain adds a number of dense layers.
func (n *net) chain(x graph.TensorID, layers int64) graph.TensorID {
	for range layers {
		x = n.fc(x)
		n.layer++
	}
	return x
}

// fc adds a dense layer with its activation.
func (n *net) fc(x graph.TensorID) graph.TensorID {
	n.dense++
	n.ops++
	inner := max(8, int64(float64(n.width)*n.work*(0.5+n.r.Float64())))
	x = n.product(x, n.width, inner)
	x = n.op("Relu", "relu", []graph.TensorID{x}, inner)
	return n.product(x, inner, n.width)
}

// op adds an op whose output has width columns, or one element for 0.
func (n *net) op(kind graph.Kind, name string, in []graph.TensorID, width int64) graph.TensorID {
	shape, elements := graph.Shape{}, int64(1)
	if width > 0 {
		shape, elements = graph.Shape{n.batch, width}, n.batch*width
	}
	n.ops++
	o := n.named(name, kind)
	if kind != "Placeholder" {
		o.FLOPs = units.FLOPs(elements)
	}
	return n.add(o, in, shape, false)
}

// product multiplies x, [batch,k], by a new variable, [k,m].
func (n *net) product(x graph.TensorID, k, m int64) graph.TensorID {
	n.ops++
	shape := graph.Shape{k, m}
	variable := n.named("w", "VariableV2")
	variable.Params, variable.Resident = k*m, units.Bytes(4*k*m)
	read := n.add(n.named("read", "Identity"), []graph.TensorID{n.add(variable, nil, shape, true)}, shape, true)
	product := n.named("product", "MatMul")
	product.GEMM = graph.GEMM{M: n.batch, N: m, K: k, Batch: 1}
	product.FLOPs = product.GEMM.FLOPs()
	return n.add(product, []graph.TensorID{x, read}, graph.Shape{n.batch, m}, false)
}

// named returns an op of the present layer; its name ends in the number of ops.
func (n *net) named(name string, kind graph.Kind) graph.Op {
	return graph.Op{Name: fmt.Sprintf("%s_%d", name, n.ops), Kind: kind, Layer: n.layer, Bytes: graph.Auto, Forward: graph.None}
}

// add adds o and returns its output.
func (n *net) add(o graph.Op, in []graph.TensorID, shape graph.Shape, resident bool) graph.TensorID {
	return n.b.Output(n.b.Op(o, in, graph.Tensor{DType: graph.F32, Shape: shape, Bytes: graph.Auto, Resident: resident}), 0)
}
