package workloads

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// attention is causal attention of x, [B*S,d], over the tokens before and its own.
func (n *serving) attention(a *Attention, l int, x tensor) (y tensor) {
	b, s := n.s.Batch, n.s.Seq
	if a.Latent != nil {
		y = n.latent(a, l, x)
	} else {
		y = n.heads(a, l, x)
	}
	n.module(a.Path, l, func() {
		if s > 1 && n.s.Scores == Products { // the kernel of attention writes them where they belong
			y = n.transpose(y, 0, 2, 1, 3)
		}
		y = n.reshape(y, b*s, a.Heads*a.ValueDim)
	})
	return n.linear(a.Path+"."+a.Out.Name, l, y, n.d.Hidden, a.Out.Bias)
}

// heads is what the heads give, [B,H,S,D].
func (n *serving) heads(a *Attention, l int, x tensor) (y tensor) {
	b, s, group := n.s.Batch, n.s.Seq, a.Heads/a.KVHeads
	q, k, v := n.projections(a, l, x)
	n.module(a.Path, l, func() {
		past := n.s.Past
		if a.Window > 0 {
			past = min(past, a.Window-1)
		}
		k, v := n.cache("key_cache", k, past), n.cache("value_cache", v, past)
		attending := graph.Attending{Heads: b * a.KVHeads, Queries: group * s, Seen: n.seen(past, a.Window), KeyDim: a.KeyDim, ValueDim: a.ValueDim}
		y = n.attend(a, attending, n.of(b, a.KVHeads, group*s, attending.Seen), n.of(b, a.Heads, s, a.ValueDim), q, k, v)
	})
	return y
}

// seen is how many keys a token's query meets behind past others: in one kernel the mean of those
// that it sees, in a product all that the last sees.
func (n *serving) seen(past, window int64) int64 {
	if n.s.Scores == OneKernel {
		return graph.Seen(n.s.Seq, past, window)
	}
	seen := past + n.s.Seq
	if window > 0 {
		seen = min(seen, window)
	}
	return seen
}

// attend is attention of queries q to keys k and values v, kept ones first, given as score, the
// shape of the scores, and out, that of the result.
func (n *serving) attend(a *Attention, m graph.Attending, score, out graph.Tensor, q tensor, k, v []tensor) tensor {
	in := append([]tensor{q}, k...)
	if n.s.Scores == OneKernel {
		for _, t := range v {
			if !slices.Contains(in, t) { // latents are keys and values
				in = append(in, t)
			}
		}
		if a.Sinks {
			in = append(in, n.parameter("sinks", false, a.Heads))
		}
		return n.product(graph.Attention, m.Forward(), out, in...)
	}
	p := n.product("BatchMatMul", graph.GEMM{Batch: m.Heads, M: m.Queries, N: m.Seen, K: m.KeyDim}, score, in...)
	if a.Capped {
		p = n.unary("Tanh", p)
	}
	if a.Sinks {
		p = n.op("Softmax", n.like(p), p, n.parameter("sinks", false, a.Heads))
	} else {
		p = n.softmax(p)
	}
	return n.product("BatchMatMul", graph.GEMM{Batch: m.Heads, M: m.Queries, N: m.ValueDim, K: m.Seen}, out, append([]tensor{p}, v...)...)
}

// projections returns queries, keys and values of x, [B,heads,S,D], turned by their
// positions.
func (n *serving) projections(a *Attention, l int, x tensor) (q, k, v tensor) {
	b, s := n.s.Batch, n.s.Seq
	var fused tensor
	if a.Fused.Name != "" {
		fused = n.linear(a.Path+"."+a.Fused.Name, l, x, (a.Heads+a.KVHeads)*a.KeyDim+a.KVHeads*a.ValueDim, a.Fused.Bias)
	}
	part := func(from Linear, heads, dim int64, norm Norm, turn bool) (y tensor) {
		if a.Fused.Name != "" {
			n.module(a.Path, l, func() {
				y = n.op("StridedSlice", n.of(b, heads, s, dim), fused)
				n.b.At(n.b.TensorAt(y).Producer).Bytes = 2 * bytesOf(n.of(b, heads, s, dim)) // not all of it is read
			})
			y = n.norm(norm, l, y)
		} else {
			y = n.linear(a.Path+"."+from.Name, l, x, heads*dim, from.Bias)
			whole := len(norm.Dims) == 1 && norm.Dims[0] == heads*dim
			if whole {
				y = n.norm(norm, l, y)
			}
			n.module(a.Path, l, func() { y = n.reshape(y, b, s, heads, dim) })
			if !whole {
				y = n.norm(norm, l, y)
			}
			n.module(a.Path, l, func() { y = n.headsFirst(y) })
		}
		if turn {
			n.module(a.Path, l, func() { y = n.unary("RotaryEmbedding", y) })
		}
		return y
	}
	q = part(a.Query, a.Heads, a.KeyDim, a.QueryNorm, a.Rotary)
	k = part(a.Key, a.KVHeads, a.KeyDim, a.KeyNorm, a.Rotary)
	v = part(a.Value, a.KVHeads, a.ValueDim, Norm{}, false)
	return q, k, v
}

// headsFirst turns [B,S,heads,D] into [B,heads,S,D]; the kernel of attention reads heads where
// they lie.
func (n *serving) headsFirst(x tensor) tensor {
	s := n.shape(x)
	if s[1] > 1 && n.s.Scores == Products {
		return n.transpose(x, 0, 2, 1, 3)
	}
	return n.reshape(x, s[0], s[2], s[1], s[3])
}

// cache adds the keys or values x, [B,heads,S,D], to those of past tokens before, and
// returns both.
func (n *serving) cache(name string, x tensor, past int64) []tensor {
	if past == 0 {
		return []tensor{x}
	}
	s := n.shape(x)
	held := n.of(s[0], s[1], past, s[3])
	held.Resident = true
	n.group++
	c := n.add(name, "VariableV2", nil, held)
	n.b.At(c).Resident, n.b.At(c).Group = bytesOf(held), n.group
	old := n.b.Output(c, 0)
	w := n.add(name+"/append", "Assign", []tensor{x, old})
	o := n.b.At(w)
	o.Group, o.FLOPs, o.Bytes = n.group, 0, 2*bytesOf(n.like(x))
	return []tensor{old, x}
}

// latent is what the heads of latent attention give, [B,H,S,V]. Where tokens before are many,
// the product that expands latents to keys and values is absorbed by queries and results
// (arXiv:2405.04434, section 2.1.2): the order of fewer operations is taken.
func (n *serving) latent(a *Attention, l int, x tensor) (y tensor) {
	t, b, s, h := a.Latent, n.s.Batch, n.s.Seq, a.Heads
	all, columns, nope := n.s.Past+s, t.Rank+t.Rope, a.KeyDim-t.Rope
	q := x
	if t.QueryRank > 0 {
		q = n.norm(t.QueryNorm, l, n.linear(a.Path+".q_a_proj", l, q, t.QueryRank, t.Bias))
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
	plain := graph.Attending{Heads: b * h, Queries: s, Seen: n.seen(n.s.Past, 0), KeyDim: a.KeyDim, ValueDim: a.ValueDim}
	latent := graph.Attending{Heads: b, Queries: h * s, Seen: plain.Seen, KeyDim: columns, ValueDim: t.Rank}
	up := graph.GEMM{Batch: h, M: b * s, N: t.Rank, K: nope}
	down := graph.GEMM{Batch: h, M: b * s, N: a.ValueDim, K: t.Rank}
	var w tensor
	n.module(a.Path+".kv_b_proj", l, func() { w = n.parameter("weight", true, t.Rank, expand.N) })
	if up.FLOPs()+latent.Forward().FLOPs()+down.FLOPs() < expand.FLOPs()+plain.Forward().FLOPs() {
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
			y = n.attend(a, latent, n.of(b, h, s, all), n.of(b, h, s, t.Rank), q, kept, kept)
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
		y = n.attend(a, plain, n.of(b, h, s, all), n.of(b, h, s, a.ValueDim), q, []tensor{key}, []tensor{v})
	})
	return y
}
