package workloads

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// matmul multiplies x, [M,K], by w, [K,N].
func (n *net) matmul(x, w tensor) tensor {
	a, b := n.shape(x), n.shape(w)
	mustEqual("product", a, b, len(a) == 2 && len(b) == 2 && a[1] == b[0])
	return n.product("MatMul", graph.GEMM{Batch: 1, M: a[0], N: b[1], K: a[1]}, n.of(a[0], b[1]), x, w)
}

// batchMatmul multiplies x, [..., M,K], by y, [..., K,N], or by y transposed,
// [..., N,K].
func (n *net) batchMatmul(x, y tensor, transposed bool) tensor {
	a, b := n.shape(x), n.shape(y)
	r := len(a)
	m, k, c := a[r-2], a[r-1], b[r-1]
	inner := b[r-2]
	if transposed {
		inner, c = c, inner
	}
	mustEqual("batched product", a, b, len(b) == r && inner == k && elements(a[:r-2]) == elements(b[:r-2]))
	out := append(slices.Clone(a[:r-1]), c)
	return n.product("BatchMatMul", graph.GEMM{Batch: elements(a[:r-2]), M: m, N: c, K: k}, n.of(out...), x, y)
}

// bias adds b, [C], to x, [..., C].
func (n *net) bias(x, b tensor) tensor {
	mustEqual("bias", n.shape(x), n.shape(b), n.dim(x, -1) == n.dim(b, 0))
	return n.op("BiasAdd", n.like(x), x, b)
}

// binary applies an elementwise op with NumPy's broadcasting.
func (n *net) binary(kind graph.Kind, x, y tensor) tensor {
	a, b := n.shape(x), n.shape(y)
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i := range b {
		d := &out[len(a)-len(b)+i]
		mustEqual(string(kind), a, b, *d == b[i] || *d == 1 || b[i] == 1)
		if *d == 1 {
			*d = b[i]
		}
	}
	t := n.of(out...)
	t.DType = n.b.TensorAt(x).DType
	switch kind {
	case "Less", "Greater", "Equal", "NotEqual", "GreaterEqual", "LessEqual":
		t.DType = graph.Bool
	}
	return n.op(kind, t, x, y)
}

// unary applies an elementwise op.
func (n *net) unary(kind graph.Kind, x tensor) tensor { return n.op(kind, n.like(x), x) }

// cast converts x to t.
func (n *net) cast(x tensor, t graph.DType) tensor {
	out := n.like(x)
	out.DType = t
	return n.op("Cast", out, x)
}

// concat joins xs along an axis.
func (n *net) concat(axis int, xs ...tensor) tensor {
	s := slices.Clone(n.shape(xs[0]))
	if axis < 0 {
		axis += len(s)
	}
	for _, x := range xs[1:] {
		s[axis] += n.dim(x, axis)
	}
	t := n.of(s...)
	t.DType = n.b.TensorAt(xs[0]).DType
	in := append(slices.Clone(xs), n.axis())
	return n.op("ConcatV2", t, in...)
}

// split cuts x along an axis into k equal parts. As in TensorFlow the axis is
// the first input.
func (n *net) split(x tensor, axis, k int) []tensor {
	s := slices.Clone(n.shape(x))
	if axis < 0 {
		axis += len(s)
	}
	mustEqual("split", s, graph.Shape{int64(k)}, s[axis]%int64(k) == 0)
	s[axis] /= int64(k)
	outs := make([]graph.Tensor, k)
	for i := range outs {
		outs[i] = n.of(s...)
	}
	at := n.axis()
	op := n.add("split", "Split", []tensor{at, x}, outs...)
	parts := make([]tensor, k)
	for i := range parts {
		parts[i] = n.b.Output(op, i)
	}
	return parts
}

// slice cuts out of x what has shape dims, as x[a:b, ...] does: a StridedSlice
// with its three constants. Dimensions that dims lacks were indexed by a number.
func (n *net) slice(x tensor, dims ...int64) tensor {
	t := n.of(dims...)
	t.DType = n.b.TensorAt(x).DType
	r := len(n.shape(x))
	y := n.op("StridedSlice", t, x, n.vector(r), n.vector(r), n.vector(r))
	o := n.b.At(n.b.TensorAt(y).Producer)
	o.Bytes = 2 * bytesOf(t) // not all of x is read
	return y
}

// sliceShape takes one number out of the shape s.
func (n *net) sliceShape(s tensor) tensor {
	return n.host("StridedSlice", ints(), s, n.vector(1), n.vector(1), n.vector(1))
}

// reshape gives x other dimensions, which a constant holds; of a batch that is
// not known it holds -1.
func (n *net) reshape(x tensor, dims ...int64) tensor {
	mustEqual("reshape", n.shape(x), dims, n.elements(x) == elements(dims))
	t := n.of(dims...)
	t.DType = n.b.TensorAt(x).DType
	return n.op("Reshape", t, x, n.vector(len(dims)))
}

// expand inserts a dimension of 1.
func (n *net) expand(x tensor, axis int) tensor {
	t := n.like(x)
	t.Shape = slices.Insert(slices.Clone(t.Shape), axis, 1)
	return n.op("ExpandDims", t, x, n.axis())
}

// squeeze removes a dimension of 1.
func (n *net) squeeze(x tensor, axis int) tensor {
	t := n.like(x)
	mustEqual("squeeze", t.Shape, nil, t.Shape[axis] == 1)
	t.Shape = slices.Delete(slices.Clone(t.Shape), axis, axis+1)
	return n.op("Squeeze", t, x)
}

// transpose permutes the dimensions of x.
func (n *net) transpose(x tensor, perm ...int) tensor {
	t := n.like(x)
	t.Shape = make(graph.Shape, len(perm))
	for i, p := range perm {
		t.Shape[i] = n.dim(x, p)
	}
	return n.op("Transpose", t, x, n.vector(len(perm)))
}

// pack stacks xs along a new axis.
func (n *net) pack(axis int, xs ...tensor) tensor {
	t := n.like(xs[0])
	t.Shape = slices.Insert(slices.Clone(t.Shape), axis, int64(len(xs)))
	return n.op("Pack", t, xs...)
}

// reduce applies Sum, Mean or Max over axes.
func (n *net) reduce(kind graph.Kind, x tensor, keep bool, axes ...int) tensor {
	s := n.shape(x)
	var out graph.Shape
	for i, d := range s {
		switch {
		case !slices.Contains(axes, i) && !slices.Contains(axes, i-len(s)):
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	if out == nil {
		out = graph.Shape{}
	}
	t := n.of(out...)
	t.DType = n.b.TensorAt(x).DType
	return n.op(kind, t, x, n.vector(len(axes)))
}

// sumAll reduces x to a scalar.
func (n *net) sumAll(kind graph.Kind, x tensor) tensor {
	axes := make([]int, len(n.shape(x)))
	for i := range axes {
		axes[i] = i
	}
	return n.reduce(kind, x, false, axes...)
}

// addN adds tensors of one shape.
func (n *net) addN(xs ...tensor) tensor {
	if len(xs) == 1 {
		return xs[0]
	}
	y := n.op("AddN", n.like(xs[0]), xs...)
	o := n.b.At(n.b.TensorAt(y).Producer)
	o.FLOPs *= units.FLOPs(len(xs) - 1)
	return y
}

// embed looks up ids, [...], in table, [V,H], giving [..., H]
// (tf.nn.embedding_lookup with one table).
func (n *net) embed(table, ids tensor) tensor {
	out := append(slices.Clone(n.shape(ids)), n.dim(table, 1))
	y := n.op("GatherV2", n.of(out...), table, ids, n.axis())
	return n.op("Identity", n.like(y), y)
}

// dropout keeps each element with a probability, as tf.nn.dropout writes it.
func (n *net) dropout(x tensor) tensor {
	var y tensor
	n.sub("dropout", func() {
		keep := n.scalar()
		s := n.shapeOf(x)
		low, high := n.scalar(), n.scalar()
		u := n.op("RandomUniform", n.like(x), s)
		u = n.binary("Mul", u, n.binary("Sub", high, low))
		u = n.binary("Add", u, low)
		mask := n.unary("Floor", n.binary("Add", keep, u))
		y = n.binary("Mul", n.binary("RealDiv", x, keep), mask)
	})
	return y
}

// masked keeps each element with a probability, in one kernel, which saves a mask of a byte an
// element, as torch.nn.functional.dropout does.
func (n *net) masked(x tensor) tensor {
	mask := n.like(x)
	mask.DType = graph.Bool
	return n.b.Output(n.add("Dropout", "Dropout", []tensor{x}, n.like(x), mask), 0)
}

// zeros is a tensor of zeros, as zero_state of a recurrent cell writes it; rows
// holds its first dimension when the batch is dynamic.
func (n *net) zeros(rows tensor, dims ...int64) tensor {
	if !n.dynamic {
		return n.constant(n.of(dims...))
	}
	// cell.zero_state: the batch size and the state's size are joined to a shape.
	batch := n.host("ExpandDims", ints(1), rows, n.axis())
	s := n.host("ConcatV2", ints(int64(len(dims))), batch, n.vector(len(dims)-1), n.axis())
	return n.op("Fill", n.of(dims...), s, n.scalar())
}
