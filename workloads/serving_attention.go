package workloads

import (
	"slices"

	"placer/graph"
)

// attention is causal attention of x, [B*S,d], over the tokens before and its own.
func (n *serving) attention(a *Attention, l int, x tensor) (y tensor) {
	b, s := n.s.Batch, n.s.Seq
	var gate tensor
	if a.Latent != nil {
		y = n.latent(a, l, x)
	} else {
		y, gate = n.heads(a, l, x)
	}
	n.module(a.Path, l, func() {
		if s > 1 && n.s.Scores == Products { // the kernel of attention writes them where they belong
			y = n.transpose(y, 0, 2, 1, 3)
		}
		y = n.reshape(y, b*s, a.Heads*a.ValueDim)
		if a.Gated {
			y = n.binary("Mul", y, n.unary("Sigmoid", gate))
		}
	})
	return n.linear(a.Path+"."+a.Out.Name, l, y, n.d.Hidden, a.Out.Bias)
}

// heads is what the heads give, [B,H,S,D], and what gates it, [B*S,H*D], where something does.
func (n *serving) heads(a *Attention, l int, x tensor) (y, gate tensor) {
	b, s, group := n.s.Batch, n.s.Seq, a.Heads/a.KVHeads
	q, k, v, gate := n.projections(a, l, x)
	n.module(a.Path, l, func() {
		past := n.s.Past
		if a.Window > 0 {
			past = min(past, a.Window-1)
		}
		var kv keysAndValues
		if a.Reuse {
			kv = n.own[a.Window > 0]
		} else {
			kv = keysAndValues{n.cache("key_cache", k, past), n.cache("value_cache", v, past), past}
			n.own[a.Window > 0] = kv
		}
		attending := graph.Attending{Heads: b * a.KVHeads, Queries: group * s, Seen: n.seen(past, a.Window), KeyDim: a.KeyDim, ValueDim: a.ValueDim}
		y = n.attend(a, attending, n.of(b, a.KVHeads, group*s, attending.Seen), n.of(b, a.Heads, s, a.ValueDim), q, kv.k, kv.v)
	})
	return y, gate
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
	indexed := a.Latent != nil && a.Latent.Index != nil
	if n.s.Scores == OneKernel {
		for _, t := range v {
			if !slices.Contains(in, t) { // latents are keys and values
				in = append(in, t)
			}
		}
		if a.Sinks {
			in = append(in, n.parameter("sinks", false, a.Heads))
		}
		if indexed {
			in = append(in, n.chosen)
		}
		return n.product(graph.Attention, m.Forward(), out, in...)
	}
	if indexed {
		in = append(in, n.chosen)
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
// positions, and what gates the result.
func (n *serving) projections(a *Attention, l int, x tensor) (q, k, v, gate tensor) {
	b, s := n.s.Batch, n.s.Seq
	var fused tensor
	if a.Fused.Name != "" {
		fused = n.linear(a.Path+"."+a.Fused.Name, l, x, (a.Heads+a.KVHeads)*a.KeyDim+a.KVHeads*a.ValueDim, a.Fused.Bias)
	}
	part := func(from Linear, heads, dim int64, norm Norm, turn, gated bool) (y tensor) {
		if a.Fused.Name != "" {
			n.module(a.Path, l, func() {
				y = n.op("StridedSlice", n.of(b, heads, s, dim), fused)
				n.b.At(n.b.TensorAt(y).Producer).Bytes = 2 * bytesOf(n.of(b, heads, s, dim)) // not all of it is read
			})
			y = n.norm(norm, l, y)
		} else {
			if gated {
				both := n.linear(a.Path+"."+from.Name, l, x, 2*heads*dim, from.Bias)
				n.module(a.Path, l, func() {
					y, gate = n.op(graph.Columns, n.of(b*s, heads*dim), both), n.op(graph.Columns, n.of(b*s, heads*dim), both)
				})
			} else {
				y = n.linear(a.Path+"."+from.Name, l, x, heads*dim, from.Bias)
			}
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
	q = part(a.Query, a.Heads, a.KeyDim, a.QueryNorm, a.Rotary, a.Gated)
	switch {
	case a.Reuse:
	case a.Value.Name == "" && a.Fused.Name == "":
		var both tensor
		keys := n.linear(a.Path+"."+a.Key.Name, l, x, a.KVHeads*a.KeyDim, a.Key.Bias)
		n.module(a.Path, l, func() { both = n.reshape(keys, b, s, a.KVHeads, a.KeyDim) })
		k, v = n.norm(a.KeyNorm, l, both), n.norm(a.ValueNorm, l, both)
		n.module(a.Path, l, func() {
			k, v = n.headsFirst(k), n.headsFirst(v)
			if a.Rotary {
				k = n.unary("RotaryEmbedding", k)
			}
		})
	default:
		k = part(a.Key, a.KVHeads, a.KeyDim, a.KeyNorm, a.Rotary, false)
		v = part(a.Value, a.KVHeads, a.ValueDim, a.ValueNorm, false, false)
	}
	return q, k, v, gate
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
	added := n.like(x)
	if n.s.Kept != graph.F32 {
		held.DType, added.DType = n.s.Kept, n.s.Kept
	}
	n.group++
	c := n.add(name, "VariableV2", nil, held)
	n.b.At(c).Resident, n.b.At(c).Group = bytesOf(held), n.group
	old := n.b.Output(c, 0)
	w := n.add(name+"/append", "Assign", []tensor{x, old})
	o := n.b.At(w)
	o.Group, o.FLOPs, o.Bytes = n.group, 0, bytesOf(n.like(x))+bytesOf(added)
	return []tensor{old, x}
}
