package onnx

import "placer/graph"

// linearAttention: queries [B,T,h*d], keys [B,T,kv*d], values [B,T,kv*v], the state before
// [B,kv,d,v], decay and rate of the update; to [B,T,h*v] and the state behind.
//
// A token by itself takes, for each number of the state, 2 operations to add its key and value, 2
// for each query that reads it, 1 where the state decays, and 2 where what the key reads is taken
// off. Several are taken in chunks: products within one, of queries by keys and of weights by
// values, and two with the state; to take off what keys read, keys by keys, the solution of a
// triangular system for keys and for values, and one more with the state (arXiv:2412.06464). A
// last chunk of fewer tokens takes as long as a whole one.
func linearAttention(c *call) {
	q, k, v := c.ranked(0, 3, 3), c.ranked(1, 3, 3), c.ranked(2, 3, 3)
	h, kv := c.node.int("q_num_heads", 1), c.node.int("kv_num_heads", 1)
	if h < 1 || kv < 1 || h%kv != 0 || q[2]%h != 0 || k[2]%kv != 0 || v[2]%kv != 0 || q[2]/h != k[2]/kv {
		c.fail("%d heads of queries %v, %d of keys %v and values %v", h, q, kv, k, v)
	}
	d, width := k[2]/kv, v[2]/kv
	state := c.elem(0)
	if c.has(3) {
		state = c.elem(3)
	}
	c.set(0, c.elem(0), graph.Shape{q[0], q[1], c.mul(h, width)})
	c.set(1, state, graph.Shape{q[0], kv, d, width})
	if min(q[0], q[1], d, width) < 1 {
		return
	}
	decays, takes := int64(1), int64(1)
	switch c.node.string("update_rule", "gated_delta") {
	case "linear":
		decays, takes = 0, 0
	case "gated":
		takes = 0
	case "delta":
		decays = 0
	}
	group := h / kv
	if q[1] == 1 {
		c.multiply(c.mul(q[0], kv), 1, width, (c.mul(2+2*group+decays+2*takes, d)+1)/2)
		return
	}
	chunk := min(max(c.node.int("chunk_size", 64), 1), 1<<16)
	inside := c.mul(chunk, c.mul(group+2*takes, d)+c.mul(group+takes, width))
	with := c.mul(c.mul(group+1+takes, d), width)
	c.multiply(c.mul(c.mul(q[0], kv), (q[1]+chunk-1)/chunk), chunk, width, (inside+with+width-1)/width)
}

// causalConvolution: [B,channels,T], each channel by its kernel [channels,1,k], behind k-1 tokens
// of a state.
func causalConvolution(c *call) {
	x, w := c.ranked(0, 3, 4), c.ranked(1, 3, 4)
	taps := c.product(w[2:])
	c.set(0, c.elem(0), x)
	if c.has(3) {
		c.set(1, c.elem(3), c.shape(3))
	} else {
		c.set(1, c.elem(0), with(x, len(x)-1, max(w[len(w)-1]-1, 0)))
	}
	c.flops = flops(2 * elementsOf(x) * float64(taps))
	if c.has(2) {
		c.flops += flops(elementsOf(x))
	}
	if a := c.node.string("activation", "none"); a == "silu" || a == "swish" {
		c.flops += flops(4 * elementsOf(x))
	}
}
