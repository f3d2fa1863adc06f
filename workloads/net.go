package workloads

import (
	"fmt"
	"strconv"

	"placer/graph"
	"placer/units"
)

// tensor is a tensor of the graph being built.
type tensor = graph.TensorID

// net is a forward graph being built. Its methods add TensorFlow ops by the
// names of TensorFlow's Python functions, with the constants those create.
type net struct {
	b     *graph.Builder
	dtype graph.DType // of activations and parameters
	// scope prefixes names; it ends in a slash or is empty.
	scope string
	// layer annotates what is added.
	layer int32
	// dynamic says that the batch size is not known when the graph is built: shapes
	// are then computed by ops where TensorFlow would write constants.
	dynamic bool
	names   map[string]int
}

func newNet(name string, t graph.DType) *net {
	return &net{b: graph.NewBuilder(name), dtype: t, layer: 1, names: map[string]int{}}
}

// within runs f under a nested scope and a layer.
func (n *net) within(scope string, layer int, f func()) {
	s, l := n.scope, n.layer
	n.scope, n.layer = n.unique(scope)+"/", int32(layer)
	f()
	n.scope, n.layer = s, l
}

// sub is within in the same layer.
func (n *net) sub(scope string, f func()) { n.within(scope, int(n.layer), f) }

// inLayer is within for layer l of the model, from 1.
func (n *net) inLayer(l int, f func()) { n.within(fmt.Sprintf("layer_%d", l), l, f) }

// unique returns the full name of base in the scope, numbered from the second on
// as TensorFlow does.
func (n *net) unique(base string) string {
	name := n.scope + base
	k, taken := n.names[name]
	n.names[name] = k + 1
	for taken {
		full := name + "_" + strconv.Itoa(k+1)
		if _, taken = n.names[full]; !taken {
			n.names[full] = 0
			name = full
		}
		k++
	}
	return name
}

// shape returns the dimensions of x, read-only.
func (n *net) shape(x tensor) graph.Shape { return n.b.TensorAt(x).Shape }

// dim returns dimension k of x; negative k counts from the end.
func (n *net) dim(x tensor, k int) int64 {
	s := n.shape(x)
	if k < 0 {
		k += len(s)
	}
	return s[k]
}

func (n *net) elements(x tensor) int64 { return elements(n.shape(x)) }

func elements(s graph.Shape) int64 {
	e := int64(1)
	for _, d := range s {
		e *= d
	}
	return e
}

func bytesOf(t graph.Tensor) units.Bytes { return units.Bytes(elements(t.Shape) * t.DType.Size()) }

// of is a tensor of the given dimensions and the type of activations.
func (n *net) of(dims ...int64) graph.Tensor {
	return graph.Tensor{DType: n.dtype, Shape: dims, Bytes: graph.Auto}
}

// ints is an int32 tensor.
func ints(dims ...int64) graph.Tensor {
	return graph.Tensor{DType: graph.I32, Shape: dims, Bytes: graph.Auto}
}

// like is a tensor of the shape and type of x that owns its memory.
func (n *net) like(x tensor) graph.Tensor {
	t := *n.b.TensorAt(x)
	return graph.Tensor{DType: t.DType, Shape: t.Shape, Bytes: graph.Auto}
}

// add adds an op of the FLOPs of the facts table.
func (n *net) add(base string, kind graph.Kind, in []tensor, outs ...graph.Tensor) graph.OpID {
	o := graph.Op{Name: n.unique(base), Kind: kind, DType: n.dtype, Bytes: graph.Auto, Layer: n.layer, Forward: graph.None}
	if len(outs) > 0 {
		o.DType = outs[0].DType
	}
	if f, _ := graph.FactsOf(kind); f.FLOPsPerElement > 0 {
		e := int64(0)
		for _, t := range in {
			e = max(e, n.elements(t))
		}
		for _, t := range outs {
			e = max(e, elements(t.Shape))
		}
		o.FLOPs = units.FLOPs(f.FLOPsPerElement * float64(e))
	}
	return n.b.Op(o, in, outs...)
}

// op adds an op with one output, named after its kind, and returns that.
func (n *net) op(kind graph.Kind, out graph.Tensor, in ...tensor) tensor {
	return n.b.Output(n.add(string(kind), kind, in, out), 0)
}

// product adds an op that amounts to m.
func (n *net) product(kind graph.Kind, m graph.GEMM, out graph.Tensor, in ...tensor) tensor {
	i := n.add(string(kind), kind, in, out)
	o := n.b.At(i)
	o.GEMM, o.FLOPs = m, m.FLOPs()
	return n.b.Output(i, 0)
}

// host adds an op on a few integers that TensorFlow runs on the host: it has
// neither FLOPs nor traffic.
func (n *net) host(kind graph.Kind, out graph.Tensor, in ...tensor) tensor {
	i := n.add(string(kind), kind, in, out)
	n.b.At(i).FLOPs, n.b.At(i).Bytes = 0, 0
	return n.b.Output(i, 0)
}

// constant adds a Const that holds x.
func (n *net) constant(x graph.Tensor) tensor {
	x.Resident = true
	i := n.add("Const", "Const", nil, x)
	n.b.At(i).Resident = bytesOf(x)
	return n.b.Output(i, 0)
}

// axis adds an integer scalar: an axis, a dimension.
func (n *net) axis() tensor { return n.constant(ints()) }

// vector adds a constant integer vector: axes, a shape, a permutation, paddings.
func (n *net) vector(k int) tensor { return n.constant(ints(int64(k))) }

// scalar adds a float scalar.
func (n *net) scalar() tensor { return n.constant(n.of()) }

// placeholder adds an input of the step.
func (n *net) placeholder(name string, x graph.Tensor) tensor {
	return n.b.Output(n.add(name, "Placeholder", nil, x), 0)
}

// lastPlaceholder adds an integer input that the model's last layer reads.
func (n *net) lastPlaceholder(name string, layer int, dims ...int64) tensor {
	x := n.placeholder(name, ints(dims...))
	n.b.At(n.b.TensorAt(x).Producer).Layer = int32(layer)
	return x
}

// shapeOf returns the shape of x as a tensor: computed when the batch is dynamic,
// a constant otherwise.
func (n *net) shapeOf(x tensor) tensor {
	r := int64(len(n.shape(x)))
	if n.dynamic {
		return n.host("Shape", ints(r), x)
	}
	return n.vector(int(r))
}

// variable adds a trainable variable and its read, and returns the read.
func (n *net) variable(name string, dims ...int64) tensor { return n.state(name, true, dims...) }

// state adds a variable and its read. One that is not trainable (a moving
// average) counts no parameters.
func (n *net) state(name string, trainable bool, dims ...int64) tensor {
	x := n.of(dims...)
	x.Resident = true
	i := n.add(name, "VariableV2", nil, x)
	o := n.b.At(i)
	o.Resident = units.Bytes(elements(dims) * n.dtype.Size())
	if trainable {
		o.Params = elements(dims)
	}
	return n.b.Output(n.add(name+"/read", "Identity", []tensor{n.b.Output(i, 0)}, x), 0)
}

// variableOf returns the tensor of the variable that read reads.
func (n *net) variableOf(read tensor) tensor {
	return n.b.InputsAt(n.b.TensorAt(read).Producer)[0]
}

// mustEqual panics when two dimensions that must agree do not.
func mustEqual(what string, a, b graph.Shape, ok bool) {
	if !ok {
		panic(fmt.Sprintf("workloads: %s of shapes %v and %v", what, a, b))
	}
}
