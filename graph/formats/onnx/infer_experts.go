package onnx

import (
	"slices"

	"placer/units"
)

// expertRules are the mixtures of experts of com.microsoft: one op for the choice of k
// experts for each token, their two or three layers, and the sum of what they give.
var expertRules = map[string]rule{
	"com.microsoft.MoE":  {"MoE", func(c *call) { experts(c, 2, 4, 6) }},
	"com.microsoft.QMoE": {"QMoE", func(c *call) { experts(c, 2, 5, 8) }},
}

// experts: tokens [T,H] or [B,S,H], scores of the router [T,E], and in the slots up, down
// and gate, the last of which may be absent, the weights of all experts: [E,N,H],
// [E,H,I] and [E,I,H], where N is I or, with the gate in it, 2I. Bytes of QMoE hold
// several weights each. The order of a weight's dimensions is the runtime's where it has
// packed them; their product is not.
//
// Every token is taken to be read by k experts, all of which get as many. A score costs
// the 5 operations of a softmax, what passes an activation 4, and each of the k results
// of a token 2 to scale and add.
func experts(c *call, up, down, gate int) {
	x, scores := c.ranked(0, 2, 3), c.ranked(1, 2, 2)
	tokens, hidden := c.product(x[:len(x)-1]), x[len(x)-1]
	all, k := scores[1], c.node.int("k", 1)
	if k < 1 || k > all || hidden < 1 {
		c.fail("%d of %d experts for %v", k, all, x)
	}
	c.set(0, c.elem(0), x)
	rows := c.mul(tokens, k)
	busy := min(all, rows)
	c.flops = flops(5*float64(tokens)*float64(all) + 2*float64(rows)*float64(hidden))
	var weights units.Bytes
	for _, slot := range []int{up, down, gate} {
		if !c.has(slot) && slot == gate {
			continue
		}
		n := c.product(c.shape(slot))
		weights += c.elem(slot).bytes(n)
		if c.kind == "QMoE" && byteSized(c.elem(slot)) {
			n = c.mul(n, c.perByte("expert_weight_bits"))
		}
		other := n / all / hidden
		if c.mul(c.mul(other, all), hidden) != n {
			c.fail("weights %v of %d experts do not fit %v", c.shape(slot), all, x)
		}
		if slot == up {
			c.flops += flops(4 * float64(rows) * float64(other))
		}
		if busy == 0 {
			continue
		}
		for _, part := range [][2]int64{{busy, rows / busy}, {1, rows % busy}} {
			if slot == down {
				c.multiply(part[0], part[1], hidden, other)
			} else {
				c.multiply(part[0], part[1], other, hidden)
			}
		}
	}
	// The weights of the experts that no token reads stay where they are.
	in, out := c.traffic()
	c.bytes = in + out - units.Bytes(float64(weights)*float64(all-busy)/float64(all))
}

// byteSized reports whether an element of type e is a byte that may hold several weights.
func byteSized(e elem) bool { return e == elemUint8 || e == elemInt8 }

// traffic returns the bytes of the node's inputs, each counted once, and outputs.
func (c *call) traffic() (in, out units.Bytes) {
	for k, t := range c.in {
		if t != nil && t.elem.known() && !slices.Contains(c.in[:k], t) {
			in += t.elem.bytes(t.elements())
		}
	}
	for _, t := range c.out {
		if t.elem.known() {
			out += t.elem.bytes(t.elements())
		}
	}
	return in, out
}
