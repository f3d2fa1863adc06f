package workloads

import "placer/graph"

// Scan is a state-space layer (Mamba-2: Dao and Gu, arXiv:2405.21060): each head keeps a state of
// HeadDim x State numbers in f32, whatever the tokens before. Tokens and, for each group of heads,
// State inputs and outputs are convolved over Kernel tokens before, each column by itself.
type Scan struct {
	Path           string
	Heads, HeadDim int64
	Groups, State  int64
	Kernel         int64
	Chunk          int64 // tokens that a prefill takes at a time
	In, Out        Linear
	ConvBias       bool
}

// columns returns how many columns tokens have, and how many are convolved.
func (t *Scan) columns() (inner, convolved int64) {
	inner = t.Heads * t.HeadDim
	return inner, inner + 2*t.Groups*t.State
}

func (t *Scan) sizes() []size {
	return []size{{"state-space heads", t.Heads, 1, 1 << 12}, {"state-space head size", t.HeadDim, 1, 1 << 14}, {"state-space groups", t.Groups, 1, t.Heads}, {"state-space inputs", t.State, 1, 1 << 14}, {"tokens of a convolution", t.Kernel, 1, 1 << 10}, {"tokens of a chunk", t.Chunk, 1, 1 << 20}}
}

// scan is a state-space layer of x, [B*S,d]: a convolution, a kernel with the state, and a norm
// beside the products with weights.
func (n *serving) scan(t *Scan, l int, x tensor) (y tensor) {
	b, s, rows := n.s.Batch, n.s.Seq, n.dim(x, 0)
	inner, convolved := t.columns()
	all := n.linear(t.Path+"."+t.In.Name, l, x, inner+convolved+t.Heads, t.In.Bias)
	part := func(columns int64) (y tensor) {
		n.module(t.Path, l, func() { y = n.op(graph.Columns, n.of(rows, columns), all) })
		return y
	}
	z, xbc, steps := part(inner), part(convolved), part(t.Heads)
	xbc = n.convolve(t.Path+".conv1d", l, xbc, t.Kernel, t.ConvBias)
	n.module(t.Path, l, func() {
		steps = n.op("Softplus", n.of(rows, t.Heads), steps, n.parameter("A_log", false, t.Heads), n.parameter("dt_bias", false, t.Heads))
		read := []tensor{xbc, steps, n.parameter("D", false, t.Heads)}
		y = n.recurrence(t.product(b, s), t.HeadDim, n.of(b, t.Heads, t.HeadDim, t.State), read)
	})
	n.module(t.Path+".norm", l, func() {
		y = n.op("RMSNorm", n.like(y), y, n.parameter("weight", false, inner), z)
		y = n.reshape(y, rows, inner)
	})
	return n.linear(t.Path+"."+t.Out.Name, l, y, n.d.Hidden, t.Out.Bias)
}

// product is what the scan amounts to in s tokens of b sequences. Token by token a state decays, the
// token's column is added and the state is read: 6 operations a number of it. By chunks of C tokens
// there are the products of outputs by inputs of each group, C x C, of these by the tokens, and two
// with the state of each head.
func (t *Scan) product(b, s int64) graph.GEMM {
	if s == 1 {
		return graph.GEMM{Batch: b * t.Heads, M: 1, N: t.HeadDim, K: 3 * t.State}
	}
	c := min(s, t.Chunk)
	inside := c*t.State*t.Groups/t.Heads + c*t.HeadDim
	return graph.GEMM{Batch: b * t.Heads * ((s + c - 1) / c), M: c, N: t.HeadDim, K: (inside + 2*t.HeadDim*t.State + t.HeadDim - 1) / t.HeadDim}
}
