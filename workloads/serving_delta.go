package workloads

import "placer/graph"

// Delta is linear attention by the gated delta rule (Yang et al., arXiv:2412.06464): each head of
// values keeps a state of KeyDim x ValueDim numbers in f32, whatever the tokens before, to which
// each token adds. Queries, keys and values of Kernel tokens are convolved before, each column by
// itself.
type Delta struct {
	Path                   string
	KeyHeads, ValueHeads   int64 // of queries and keys, and of values
	KeyDim, ValueDim       int64 // of a head
	Kernel                 int64
	QKVZ, QKV, Z, BA, B, A Linear // queries, keys and values, the gate of the result, two numbers a head of values: together or apart
	Out                    Linear
}

// columns returns how many columns queries or keys have, and how many values.
func (t *Delta) columns() (keys, values int64) {
	return t.KeyHeads * t.KeyDim, t.ValueHeads * t.ValueDim
}

func (t *Delta) sizes() []size {
	return []size{{"linear heads of keys", t.KeyHeads, 1, 1 << 12}, {"linear heads of values", t.ValueHeads, 1, 1 << 12}, {"linear head size", t.KeyDim, 1, 1 << 14}, {"linear value size", t.ValueDim, 1, 1 << 14}, {"tokens of a convolution", t.Kernel, 1, 1 << 10}}
}

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
		y = n.recurrence(t.product(b, s), t.ValueDim, n.of(b, t.ValueHeads, t.KeyDim, t.ValueDim), read)
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
