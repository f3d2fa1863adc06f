package workloads

import (
	"placer/graph"
	"placer/units"
)

// latent is what the heads of latent attention give, [B,H,S,V]. Where tokens before are many,
// the product that expands latents to keys and values is absorbed by queries and results
// (arXiv:2405.04434, section 2.1.2): the order of fewer operations is taken. Where each token has
// latents of its own chosen for it, these are not expanded.
func (n *serving) latent(a *Attention, l int, x tensor) (y tensor) {
	t, b, s, h := a.Latent, n.s.Batch, n.s.Seq, a.Heads
	all, columns, nope := n.s.Past+s, t.Rank+t.Rope, a.KeyDim-t.Rope
	q, most := x, int64(0) // tokens that one attends to
	if t.QueryRank > 0 {
		q = n.norm(t.QueryNorm, l, n.linear(a.Path+".q_a_proj", l, q, t.QueryRank, t.Bias))
		if t.Index != nil {
			n.index(t.Index, l, x, q)
			most = t.Index.PerToken
		}
		q = n.linear(a.Path+".q_b_proj", l, q, h*a.KeyDim, false)
	} else {
		q = n.linear(a.Path+".q_proj", l, q, h*a.KeyDim, false)
	}
	c := n.norm(t.Norm, l, n.linear(a.Path+".kv_a_proj_with_mqa", l, x, columns, t.Bias))
	var kept []tensor
	n.module(a.Path, l, func() {
		q = n.unary("RotaryEmbedding", n.headsFirst(n.reshape(q, b, s, h, a.KeyDim)))
		kept = n.cache("latent_cache", n.unary("RotaryEmbedding", n.reshape(c, b, 1, s, columns)), n.s.Past)
	})
	expand := graph.GEMM{Batch: 1, M: b * all, N: h * (nope + a.ValueDim), K: t.Rank}
	plain := graph.Attending{Heads: b * h, Queries: s, Seen: n.seen(n.s.Past, most), KeyDim: a.KeyDim, ValueDim: a.ValueDim}
	latent := graph.Attending{Heads: b, Queries: h * s, Seen: plain.Seen, KeyDim: columns, ValueDim: t.Rank}
	up := graph.GEMM{Batch: h, M: b * s, N: t.Rank, K: nope}
	down := graph.GEMM{Batch: h, M: b * s, N: a.ValueDim, K: t.Rank}
	var w tensor
	n.module(a.Path+".kv_b_proj", l, func() { w = n.parameter("weight", true, t.Rank, expand.N) })
	sparse := t.Index != nil && all > most
	if sparse || up.FLOPs()+latent.Forward().FLOPs()+down.FLOPs() < expand.FLOPs()+plain.Forward().FLOPs() {
		// part is a product with the columns of the weight that belong to keys or to values.
		part := func(m graph.GEMM, out graph.Tensor, x tensor, columns int64) (y tensor) {
			n.module(a.Path+".kv_b_proj", l, func() {
				y = n.product("BatchMatMul", m, out, x, w)
				n.b.At(n.b.TensorAt(y).Producer).Bytes = n.bytes(x) + bytesOf(out) + n.bytes(w)*units.Bytes(columns)/units.Bytes(nope+a.ValueDim)
			})
			return y
		}
		q = part(up, n.of(b, h, s, columns), q, nope)
		n.module(a.Path, l, func() {
			y = n.attend(a, latent, n.of(b, h, s, latent.Seen), n.of(b, h, s, t.Rank), q, kept, kept)
			if sparse && n.s.Scores == OneKernel { // it reads the latents that are chosen
				n.b.At(n.b.TensorAt(y).Producer).Bytes = n.bytes(q) + bytesOf(n.like(y)) + bytesOf(n.of(b, min(all, s*most), columns))
			}
		})
		return part(down, n.of(b, h, s, a.ValueDim), y, a.ValueDim)
	}
	var kv tensor
	n.module(a.Path+".kv_b_proj", l, func() {
		in := []tensor{kept[0], w}
		kv = n.times(n.product("MatMul", expand, n.of(b*all, expand.N), append(in, kept[1:]...)...), "weight", t.Rank, expand.N)
	})
	n.module(a.Path, l, func() {
		key := n.op("ConcatV2", n.of(b, h, all, a.KeyDim), append([]tensor{kv}, kept...)...)
		v := n.op("StridedSlice", n.of(b, h, all, a.ValueDim), kv)
		n.b.At(n.b.TensorAt(v).Producer).Bytes = 2 * bytesOf(n.of(b, h, all, a.ValueDim))
		n.b.At(n.b.TensorAt(key).Producer).Bytes = 2 * bytesOf(n.of(b, h, all, a.KeyDim))
		y = n.attend(a, plain, n.of(b, h, s, plain.Seen), n.of(b, h, s, a.ValueDim), q, []tensor{key}, []tensor{v})
	})
	return y
}

// Index chooses the tokens that a token attends to (DeepSeek Sparse Attention: DeepSeek-AI,
// arXiv:2512.02556, section 2.1): the PerToken with the highest scores, by queries of Heads heads
// of Dim columns, which are made of the compressed queries, and one key a token.
type Index struct {
	Path     string
	Heads    int64
	Dim      int64
	PerToken int64
	Given    bool // the layer before chose
}

// index chooses the latents that each token attends to, by x, [B*S,d], and the compressed queries.
func (n *serving) index(t *Index, l int, x, queries tensor) {
	if t.Given {
		return
	}
	b, s, all := n.s.Batch, n.s.Seq, n.s.Past+n.s.Seq
	q := n.linear(t.Path+".wq_b", l, queries, t.Heads*t.Dim, false)
	k := n.norm(Norm{Path: t.Path + ".k_norm", Kind: "LayerNormalization", Dims: []int64{t.Dim}, Bias: true}, l, n.linear(t.Path+".wk", l, x, t.Dim, false))
	w := n.linear(t.Path+".weights_proj", l, x, t.Heads, false)
	n.module(t.Path, l, func() {
		q = n.unary("RotaryEmbedding", n.headsFirst(n.reshape(q, b, s, t.Heads, t.Dim)))
		kept := n.cache("index_cache", n.unary("RotaryEmbedding", n.reshape(k, b, 1, s, t.Dim)), n.s.Past)
		m := graph.GEMM{Batch: b, M: t.Heads * s, N: n.seen(n.s.Past, 0), K: t.Dim}
		score := n.of(b, 1, s, all)
		score.DType = graph.F32
		y := n.product("BatchMatMul", m, score, append([]tensor{q, w}, kept...)...)
		n.b.At(n.b.TensorAt(y).Producer).FLOPs += graph.GEMM{Batch: b * s, M: 1, N: m.N, K: t.Heads}.FLOPs() // the heads' sum
		most := min(all, t.PerToken)
		top := n.add("TopK", "TopK", []tensor{y}, n.of(b, 1, s, most), ints(b, 1, s, most))
		n.chosen = n.b.Output(top, 1)
	})
}
