package onnx

import "placer/graph"

var recurrentRules = map[string]rule{
	"LSTM": {"LSTM", func(c *call) { recurrent(c, 4) }}, "GRU": {"GRU", func(c *call) { recurrent(c, 3) }}, "RNN": {"RNN", func(c *call) { recurrent(c, 1) }},
}

// recurrent is a whole layer over a sequence: X [T,B,I], W [dirs,gates*H,I],
// R [dirs,gates*H,H] to Y [T,dirs,B,H] and the last states [dirs,B,H]. With
// layout 1 the batch comes first.
func recurrent(c *call, gates int64) {
	x, w, r := c.ranked(0, 3, 3), c.ranked(1, 3, 3), c.ranked(2, 3, 3)
	dirs, hidden := w[0], c.node.int("hidden_size", r[2])
	if w[1] != c.mul(gates, max(hidden, 0)) || r[1] != w[1] || r[2] != hidden || w[2] != x[2] || r[0] != dirs {
		c.fail("weights %v and %v do not fit input %v", w, r, x)
	}
	steps, batch := x[0], x[1]
	y, state := graph.Shape{steps, dirs, batch, hidden}, graph.Shape{dirs, batch, hidden}
	if c.node.int("layout", 0) != 0 {
		steps, batch = batch, steps
		y, state = graph.Shape{batch, steps, dirs, hidden}, graph.Shape{batch, dirs, hidden}
	}
	c.set(0, c.elem(0), y)
	c.set(1, c.elem(0), state)
	c.set(2, c.elem(0), state)
	c.imp.repeats(c.node, steps)
	c.multiply(dirs, c.mul(steps, batch), w[1], x[2])
	c.multiply(c.mul(steps, dirs), batch, w[1], hidden)
	c.flops = flops(10 * elementsOf(y) * float64(gates)) // activations and gating
}
