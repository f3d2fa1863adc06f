package workloads

import (
	"placer/graph"
	"placer/units"
)

// deltaChunk is how many tokens of a prefill kernels of the gated delta rule take at a time
// (arXiv:2412.06464, section 3.3; 64 in flash-linear-attention and in transformers).
const deltaChunk = 64

// delta is linear attention of x, [B*S,d], by the gated delta rule: a convolution, a kernel with
// the state, and a norm beside the products with weights.
func (n *serving) delta(t *Delta, l int, x tensor) (y tensor) {
	b, s, rows := n.s.Batch, n.s.Seq, n.dim(x, 0)
	keys, values := t.columns()
	in := func(name Linear, columns int64) tensor {
		return n.linear(t.Path+"."+name.Name, l, x, columns, name.Bias)
	}
	part := func(of tensor, columns int64) (y tensor) {
		n.module(t.Path, l, func() { y = n.op(graph.Columns, n.of(rows, columns), of) })
		return y
	}
	var qkv, z tensor
	var gates []tensor
	if t.QKVZ.Name != "" {
		all := in(t.QKVZ, 2*(keys+values))
		qkv, z = part(all, 2*keys+values), part(all, values)
		gates = []tensor{in(t.BA, 2*t.ValueHeads)}
	} else {
		qkv, z = in(t.QKV, 2*keys+values), in(t.Z, values)
		gates = []tensor{in(t.B, t.ValueHeads), in(t.A, t.ValueHeads)}
	}
	qkv = n.convolve(t.Path+".conv1d", l, qkv, t.Kernel, false)
	n.module(t.Path, l, func() {
		gates = append(gates, n.parameter("A_log", false, t.ValueHeads), n.parameter("dt_bias", false, t.ValueHeads))
		read := []tensor{qkv, n.op("Softplus", n.of(rows, 2*t.ValueHeads), gates...)}
		if n.s.Past > 0 {
			state := n.of(b, t.ValueHeads, t.KeyDim, t.ValueDim)
			state.DType = graph.F32
			read = append(read, n.kept("state_cache", state))
		}
		m := t.product(b, s)
		y = n.product("BatchMatMul", m, n.of(b, t.ValueHeads, s, t.ValueDim), read...)
		n.inPlace(y, read, m.FLOPs())
		y = n.reshape(y, b, s, t.ValueHeads, t.ValueDim)
	})
	n.module(t.Path+".norm", l, func() {
		y = n.op("RMSNorm", n.like(y), y, n.parameter("weight", false, t.ValueDim), z)
		y = n.reshape(y, rows, values)
	})
	return n.linear(t.Path+"."+t.Out.Name, l, y, n.d.Hidden, t.Out.Bias)
}

// product is what the rule amounts to in s tokens of b sequences. Token by token a state decays,
// is read by the key, takes the correction up and is read by the query: 7 operations a number of
// it. By chunks of C tokens a head has products of keys by keys and queries by keys, the solution
// of the triangular system for values and for keys, and the weights by values, of C x C numbers,
// and three products with the state. A last chunk of fewer tokens takes as long as a whole one.
func (t *Delta) product(b, s int64) graph.GEMM {
	if s == 1 {
		return graph.GEMM{Batch: b * t.ValueHeads, M: 1, N: t.ValueDim, K: (7*t.KeyDim + 1) / 2}
	}
	inside, state := deltaChunk*(3*t.KeyDim+2*t.ValueDim), 3*t.KeyDim*t.ValueDim
	return graph.GEMM{Batch: b * t.ValueHeads * ((s + deltaChunk - 1) / deltaChunk), M: deltaChunk, N: t.ValueDim, K: (inside + state + t.ValueDim - 1) / t.ValueDim}
}

// kept adds what is kept from step to step in the place of itself: x, which the next op reads and
// writes.
func (n *serving) kept(name string, x graph.Tensor) tensor {
	x.Resident = true
	n.group++
	c := n.add(name, "VariableV2", nil, x)
	n.b.At(c).Resident, n.b.At(c).Group = bytesOf(x), n.group
	return n.b.Output(c, 0)
}

// inPlace says what the op of y does: f operations, and to move what it reads and y, and the last
// it reads once more where that is kept.
func (n *serving) inPlace(y tensor, read []tensor, f units.FLOPs) {
	o := n.b.At(n.b.TensorAt(y).Producer)
	o.FLOPs, o.Bytes = f, n.bytes(y)
	for _, t := range read {
		o.Bytes += n.bytes(t)
	}
	if n.s.Past > 0 {
		o.Bytes, o.Group = o.Bytes+n.bytes(read[len(read)-1]), n.group
	}
}
