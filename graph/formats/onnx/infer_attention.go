package onnx

import "placer/graph"

var attentionRules = map[string]rule{
	"Attention": {"Attention", attention}, "RotaryEmbedding": {"RotaryEmbedding", like}, "com.microsoft.RotaryEmbedding": {"RotaryEmbedding", like},
	"com.microsoft.Attention": {"ProjectedAttention", fusedAttention}, "com.microsoft.MultiHeadAttention": {"Attention", multiHeadAttention},
	"com.microsoft.GroupQueryAttention": {"Attention", groupQueryAttention}, "com.microsoft.QAttention": {"ProjectedAttention", quantizedAttention},
	"com.microsoft.DecoderMaskedMultiHeadAttention": {"Attention", func(c *call) { multiHead(c, 5) }},
	"LinearAttention": {"BatchMatMul", linearAttention}, "com.microsoft.LinearAttention": {"BatchMatMul", linearAttention},
	"CausalConvWithState": {graph.CausalConv, causalConvolution}, "com.microsoft.CausalConvWithState": {graph.CausalConv, causalConvolution},
	"com.microsoft.RelativePositionBias":      {"Gather", relativePositionBias},
	"com.microsoft.GatedRelativePositionBias": {"GatedRelativePositionBias", gatedPositionBias},
}

// oneKernel is attention in one kernel: queries [batch,heads,queries,keyDim] with keys
// [batch,kvHeads,keys,keyDim], weights with values [batch,kvHeads,keys,valueDim]. Causal queries are
// the last tokens, and see no more than window keys where that is not 0.
type oneKernel struct {
	batch, heads, kvHeads, queries, keys, keyDim, valueDim, window int64

	causal bool
}

// attend adds attention in one kernel.
func (c *call) attend(a oneKernel) {
	if min(a.batch, a.heads, a.kvHeads, a.queries, a.keys, a.keyDim, a.valueDim) < 1 || a.heads%a.kvHeads != 0 {
		c.multiply(0, 0, 0, 0)
		return
	}
	seen := a.keys
	if a.causal && a.keys >= a.queries {
		seen = graph.Seen(a.queries, a.keys-a.queries, a.window)
	}
	m := graph.Attending{Heads: c.mul(a.batch, a.kvHeads), Queries: c.mul(a.heads/a.kvHeads, a.queries), Seen: seen, KeyDim: a.keyDim, ValueDim: a.valueDim}.Forward()
	c.multiply(m.Batch, m.M, m.N, m.K)
}

// score adds the two products of attention that projects as well: queries [b,h,q,d] with keys
// [b,h,k,d], weights [b,h,q,k] with values [b,h,k,v], and the softmax between.
func (c *call) score(batch, heads, q, k, d, v int64) {
	n := c.mul(batch, heads)
	c.multiply(n, q, k, d)
	c.multiply(n, q, v, k)
	c.flops += flops(5 * float64(n) * float64(q) * float64(k))
}

// attention is the standard's: Q, K, V of [B,heads,S,d] or [B,S,heads*d], mask,
// past key, past value; outputs Y, present key, present value, scores.
func attention(c *call) {
	q, k, v := c.ranked(0, 3, 4), c.ranked(1, 3, 4), c.ranked(2, 3, 4)
	split := func(s graph.Shape, heads int64) graph.Shape {
		if len(s) == 4 {
			return s
		}
		if heads < 1 || s[2]%heads != 0 {
			c.fail("%d heads of %v", heads, s)
		}
		return graph.Shape{s[0], heads, s[1], s[2] / heads}
	}
	flat := len(q) == 3
	q = split(q, c.node.int("q_num_heads", 1))
	k, v = split(k, c.node.int("kv_num_heads", 1)), split(v, c.node.int("kv_num_heads", 1))
	if c.has(4) && c.has(5) {
		past, pastV := c.ranked(4, 4, 4), c.ranked(5, 4, 4)
		k, v = with(k, 2, k[2]+past[2]), with(v, 2, v[2]+pastV[2])
	}
	if q[3] != k[3] || v[2] != k[2] {
		c.fail("query %v, key %v and value %v", q, k, v)
	}
	y := graph.Shape{q[0], q[1], q[2], v[3]}
	if flat {
		y = graph.Shape{q[0], q[2], c.mul(q[1], v[3])}
	}
	c.set(0, c.elem(0), y)
	c.set(1, c.elem(1), k)
	c.set(2, c.elem(2), v)
	c.set(3, c.elem(0), graph.Shape{q[0], q[1], q[2], k[2]})
	c.attend(oneKernel{batch: q[0], heads: q[1], kvHeads: k[1], queries: q[2], keys: k[2], keyDim: q[3], valueDim: v[3], causal: c.node.int("is_causal", 0) != 0})
}

// heads returns num_heads, which must divide width.
func (c *call) heads(width int64) int64 {
	h := c.node.int("num_heads", 1)
	if h < 1 || width%h != 0 {
		c.fail("%d heads of width %d", h, width)
	}
	return h
}

// fusedAttention (com.microsoft) projects as well: input [B,S,I], weights
// [I,q+k+v], bias, mask, past [2,B,heads,P,d]; outputs [B,S,v] and present.
func fusedAttention(c *call) { c.projectedAttention(4, c.elem(0)) }

// quantizedAttention (com.microsoft) has an input and weights of 8 bits, a bias, three
// inputs of scales and mask, two zero points, and the past. Its products all count as of
// the floats of its result, though the projection is one of 8-bit integers: an op has
// one type, and the slower one bounds its time from above.
func quantizedAttention(c *call) { c.projectedAttention(8, c.elem(2)) }

// projectedAttention is fusedAttention with the past in slot at and results of type e.
func (c *call) projectedAttention(at int, e elem) {
	x, w := c.ranked(0, 3, 3), c.ranked(1, 2, 2)
	if w[0] != x[2] {
		c.fail("weights %v do not fit input %v", w, x)
	}
	sizes := c.node.ints("qkv_hidden_sizes")
	if len(sizes) == 0 {
		sizes = []int64{w[1] / 3, w[1] / 3, w[1] / 3}
	}
	if len(sizes) != 3 || sizes[0] < 0 || sizes[2] < 0 {
		c.fail("qkv_hidden_sizes %v", sizes)
	}
	h := c.heads(sizes[0])
	past := int64(0)
	if c.has(at) {
		past = c.ranked(at, 5, 5)[3]
	}
	c.set(0, e, graph.Shape{x[0], x[1], sizes[2]})
	c.set(1, e, graph.Shape{2, x[0], h, past + x[1], sizes[0] / h})
	c.multiply(1, c.mul(x[0], x[1]), w[1], w[0])
	c.score(x[0], h, x[1], past+x[1], sizes[0]/h, sizes[2]/h)
}

// multiHeadAttention (com.microsoft): query [B,S,h*d], or packed with key and
// value in [B,S,h,3,d]; key, value [B,K,h*d] or [B,h,K,d]; past key and value are
// inputs 6 and 7.
func multiHeadAttention(c *call) { multiHead(c, 6) }

// multiHead is multiHeadAttention with the past key in slot past. Where past and present
// share a buffer, that is as long as both may become, and all of it counts.
func multiHead(c *call, past int) {
	q, causal := c.ranked(0, 3, 5), c.node.int("unidirectional", 0) != 0
	if len(q) == 5 {
		c.set(0, c.elem(0), graph.Shape{q[0], q[1], c.mul(q[2], q[4])})
		c.attend(oneKernel{batch: q[0], heads: q[2], kvHeads: q[2], queries: q[1], keys: q[1], keyDim: q[4], valueDim: q[4], causal: causal})
		return
	}
	h := c.heads(q[len(q)-1])
	d := q[len(q)-1] / h
	keys, width := q[1], q[len(q)-1]
	if c.has(1) {
		if k := c.ranked(1, 3, 5); len(k) == 4 {
			keys = k[2]
		} else {
			keys = k[1]
		}
	}
	if c.has(2) {
		if v := c.ranked(2, 3, 4); len(v) == 4 {
			width = c.mul(h, v[3])
		} else {
			width = v[2]
		}
	}
	if c.has(past) {
		before := c.ranked(past, 4, 4)[2]
		if c.node.int("past_present_share_buffer", 0) != 0 {
			keys = before
		} else {
			keys += before
		}
	}
	c.set(0, c.elem(0), graph.Shape{q[0], q[1], width})
	c.set(1, c.elem(0), graph.Shape{q[0], h, keys, d})
	c.set(2, c.elem(0), graph.Shape{q[0], h, keys, width / h})
	c.attend(oneKernel{batch: q[0], heads: h, kvHeads: h, queries: q[1], keys: keys, keyDim: d, valueDim: width / h, causal: causal})
}

// groupQueryAttention (com.microsoft): query [B,S,h*d] (or packed with key and
// value), key and value [B,S,kv*d], past [B,kv,P,d]. local_window_size counts the query's own key.
func groupQueryAttention(c *call) {
	q := c.ranked(0, 3, 3)
	h, kv := c.node.int("num_heads", 1), c.node.int("kv_num_heads", 1)
	width := q[2]
	if h < 1 || kv < 1 || h > 1<<20 || kv > 1<<20 {
		c.fail("%d heads, %d for keys", h, kv)
	}
	if !c.has(1) {
		width = q[2] / (h + 2*kv) * h
	}
	if width%h != 0 {
		c.fail("%d heads of width %d", h, width)
	}
	d := width / h
	past, held, cached := int64(0), d, c.elem(0)
	if c.has(3) { // of 8 bits, or two numbers a byte, where the cache is quantised
		p := c.ranked(3, 4, 4)
		past, held, cached = p[2], p[3], c.elem(3)
	}
	present := graph.Shape{q[0], kv, max(past, q[1]), held}
	if past > 0 && past < maxDim {
		present[2] = past + q[1]
	}
	c.set(0, c.elem(0), graph.Shape{q[0], q[1], width})
	c.set(1, cached, present)
	c.set(2, cached, present)
	c.attend(oneKernel{batch: q[0], heads: h, kvHeads: kv, queries: q[1], keys: present[2], keyDim: d, valueDim: d, causal: c.node.int("causal", 1) != 0, window: max(c.node.int("local_window_size", -1), 0)})
}

// relativePositionBias: a table [buckets,heads] and the numbers of queries and keys.
func relativePositionBias(c *call) {
	c.set(0, c.elem(0), graph.Shape{1, c.ranked(0, 2, 2)[1], c.scalar(1), c.scalar(2)})
}

// gatedPositionBias: queries [B,S,h*d], their bias, the bias of positions [1,h,S,S], weights
// [d,D] and more of the gate; to [B,h,S,S].
func gatedPositionBias(c *call) {
	q, w := c.ranked(0, 3, 3), c.ranked(3, 2, 2)
	h := c.heads(q[2])
	out := graph.Shape{q[0], h, q[1], q[1]}
	c.set(0, c.elem(0), out)
	c.multiply(1, c.mul(c.mul(q[0], h), q[1]), w[1], w[0])
	c.flops += flops(2 * elementsOf(out))
}
