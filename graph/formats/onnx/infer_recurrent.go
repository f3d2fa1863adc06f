package onnx

import (
	"placer/graph"
	"placer/units"
)

var recurrentRules = map[string]rule{
	"LSTM": {"LSTM", func(c *call) { recurrent(c, 4) }}, "GRU": {"GRU", func(c *call) { recurrent(c, 3) }}, "RNN": {"RNN", func(c *call) { recurrent(c, 1) }},
	"com.microsoft.DynamicQuantizeLSTM": {"LSTM", func(c *call) { recurrent(c, 4) }},
}

// recurrent is a whole layer over a sequence: X [T,B,I], W [dirs,gates*H,I],
// R [dirs,gates*H,H] to Y [T,dirs,B,H] and the last states [dirs,B,H]. With
// layout 1 the batch comes first.
func recurrent(c *call, gates int64) {
	x, w, r := c.ranked(0, 3, 3), c.ranked(1, 3, 3), c.ranked(2, 3, 3)
	if c.node.op == "DynamicQuantizeLSTM" { // its weights stand transposed
		w, r = graph.Shape{w[0], w[2], w[1]}, graph.Shape{r[0], r[2], r[1]}
	}
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
	c.flops = flops(10 * elementsOf(y) * float64(gates)) // activations and gating
	if min(steps, batch, hidden, dirs) < 1 || steps == 1 {
		c.multiply(dirs, c.mul(steps, batch), w[1], x[2])
		c.multiply(c.mul(steps, dirs), batch, w[1], hidden)
		return
	}
	c.repeats, c.products = steps, []graph.GEMM{graph.RecurrentStep(dirs, batch, gates, hidden, x[2])}
	if e := c.elem(0); e.known() {
		c.bytes = c.recurrentBytes(steps, gates, elementsOf(y)*float64(e.dtype().Size()))
	}
}

// recurrentBytes is the device memory that a layer reads and writes that makes so many bytes
// of output in so many steps. The product of the input reads that and its weights and
// writes the gates, all once; each step reads its part of the gates, the recurrent weights
// and the state, and writes its output and, of an LSTM, the cell.
//
// That weights are read in every step holds for kernels that end with a step. Persistent
// ones (Diamos et al., Persistent RNNs, ICML 2016) keep small weights on the chip.
func (c *call) recurrentBytes(steps, gates int64, output float64) units.Bytes {
	states := 1. // read in a step, or written beside the output
	if gates == 4 {
		states = 3
	}
	moved := output * (states + 2*float64(gates))
	for k, t := range c.in {
		times := 1.
		if k == 2 {
			times = float64(steps)
		}
		if t != nil && t.elem.known() {
			moved += times * float64(t.elem.bytes(t.elements()))
		}
	}
	_, out := c.traffic()
	if moved += float64(out); !(moved < float64(graph.MaxBytes)) {
		c.fail("moves %.3g bytes", moved)
	}
	return units.Bytes(moved)
}
