package transfer

import (
	"fmt"
	"math/rand/v2"

	"placer/graph"
	"placer/graph/train"
	"placer/units"
)

// The styles of generated nets. They share no builder with the workloads.
const (
	seriesParallel = "series-parallel" // blocks of branches within branches
	towers         = "towers"          // parallel chains from one input, joined late
	crossed        = "crossed"         // two stacks, the second reading the first's end
	skips          = "skips"           // a residual chain whose layers all feed the head
)

// RandomNet returns the training graph of a generated net of dense layers: of
// depth layers of a style, with batch rows and layers of width columns. heavy
// scales the work of a layer against what it passes on, as convolutions do.
func RandomNet(style string, depth, batch, width int, heavy float64, seed uint64) (*graph.Graph, error) {
	n := &randomNet{b: graph.NewBuilder(style), r: rand.New(rand.NewPCG(seed, 0x5e)), batch: int64(batch), width: int64(width), heavy: heavy}
	if depth < 1 || batch < 1 || width < 1 || !(heavy > 0) {
		return nil, fmt.Errorf("random net: depth %d, batch %d, width %d and work %g must be positive", depth, batch, width, heavy)
	}
	n.layer = 1
	x := n.op("Placeholder", "input", nil, n.width)
	switch style {
	case seriesParallel:
		for n.dense < depth {
			x = n.block(x, 2)
			n.layer++
		}
	case towers:
		k := 2 + n.r.IntN(4)
		ends := make([]graph.TensorID, k)
		for i := range ends {
			ends[i] = x
			n.layer = 1
			for range max(1, depth/(k+1)) {
				ends[i] = n.fc(ends[i])
				n.layer++
			}
		}
		x = n.op("AddN", "join", ends, n.width)
		for range max(1, depth/(k+1)) {
			x = n.fc(x)
			n.layer++
		}
	case crossed:
		a := x
		for range depth / 2 {
			a = n.fc(a)
			n.layer++
		}
		y := n.op("Placeholder", "input", nil, n.width)
		for i := range max(1, depth/2) {
			y = n.fc(y)
			if i%2 == 0 {
				y = n.op("AddV2", "cross", []graph.TensorID{y, n.fc(a)}, n.width)
			}
			n.layer++
		}
		x = y
	case skips:
		var all []graph.TensorID
		for range max(2, depth/2) {
			h := n.fc(x)
			all = append(all, n.fc(h))
			x = n.op("AddV2", "residual", []graph.TensorID{x, h}, n.width)
			n.layer++
		}
		x = n.fc(n.op("AddN", "sum", all, n.width))
	default:
		return nil, fmt.Errorf("random net: unknown style %q", style)
	}
	x = n.fc(x)
	axes := n.b.Op(graph.Op{Name: "axes", Kind: "Const", Forward: graph.None, Bytes: graph.Auto}, nil, graph.Tensor{DType: graph.I32, Shape: graph.Shape{2}, Bytes: graph.Auto})
	n.op("Mean", "loss", []graph.TensorID{x, n.b.Output(axes, 0)}, 0)
	g, err := n.b.Build()
	if err != nil {
		return nil, err
	}
	return train.Derive(g, train.Default())
}

// randomNet is a net being built.
type randomNet struct {
	b            *graph.Builder
	r            *rand.Rand
	batch, width int64
	heavy        float64
	layer        int32
	dense, ops   int
}

// op adds an op whose output has width columns, or one element for 0.
func (n *randomNet) op(kind graph.Kind, name string, in []graph.TensorID, width int64) graph.TensorID {
	shape, elements := graph.Shape{}, int64(1)
	if width > 0 {
		shape, elements = graph.Shape{n.batch, width}, n.batch*width
	}
	n.ops++
	o := graph.Op{Name: fmt.Sprintf("%s_%d", name, n.ops), Kind: kind, Layer: n.layer, Bytes: graph.Auto, Forward: graph.None, FLOPs: units.FLOPs(elements)}
	if kind == "Placeholder" {
		o.FLOPs = 0
	}
	return n.b.Output(n.b.Op(o, in, graph.Tensor{DType: graph.F32, Shape: shape, Bytes: graph.Auto}), 0)
}

// fc adds a dense layer with its activation.
func (n *randomNet) fc(x graph.TensorID) graph.TensorID {
	n.dense++
	n.ops++
	inner := int64(float64(n.width) * n.heavy * (0.5 + n.r.Float64()))
	inner = max(8, inner)
	x = n.product(x, n.width, inner)
	x = n.op("Relu", "relu", []graph.TensorID{x}, inner)
	return n.product(x, inner, n.width)
}

// product multiplies x, [batch,k], by a new variable, [k,m].
func (n *randomNet) product(x graph.TensorID, k, m int64) graph.TensorID {
	n.ops++
	shape := graph.Shape{k, m}
	v := n.b.Op(graph.Op{Name: fmt.Sprintf("w_%d", n.ops), Kind: "VariableV2", Layer: n.layer, Params: k * m, Resident: units.Bytes(4 * k * m), Forward: graph.None, Bytes: graph.Auto}, nil,
		graph.Tensor{DType: graph.F32, Shape: shape, Bytes: graph.Auto, Resident: true})
	read := n.b.Op(graph.Op{Name: fmt.Sprintf("read_%d", n.ops), Kind: "Identity", Layer: n.layer, Forward: graph.None, Bytes: graph.Auto}, []graph.TensorID{n.b.Output(v, 0)},
		graph.Tensor{DType: graph.F32, Shape: shape, Bytes: graph.Auto, Resident: true})
	gemm := graph.GEMM{M: n.batch, N: m, K: k, Batch: 1}
	o := graph.Op{Name: fmt.Sprintf("product_%d", n.ops), Kind: "MatMul", Layer: n.layer, GEMM: gemm, FLOPs: gemm.FLOPs(), Bytes: graph.Auto, Forward: graph.None}
	return n.b.Output(n.b.Op(o, []graph.TensorID{x, n.b.Output(read, 0)}, graph.Tensor{DType: graph.F32, Shape: graph.Shape{n.batch, m}, Bytes: graph.Auto}), 0)
}

// block adds a chain, or branches joined by a sum, nested at most depth deep.
func (n *randomNet) block(x graph.TensorID, depth int) graph.TensorID {
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
