package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// recurrent classifies sequences by a stack of recurrent layers, unrolled: LSTMs, or
// gated recurrent units (Cho et al., arXiv:1406.1078), in one direction or in both
// (Schuster and Paliwal 1997). Layer l of the model is layer l; the classifier, which
// reads the mean over time of the last layer, belongs to the last.
type recurrent struct {
	layers        int
	unroll        int   // time steps
	inputs        int64 // features of a time step
	hidden        int64 // units of a layer, in each direction
	classes       int64
	gru           bool // gated recurrent units in place of LSTMs
	bidirectional bool
	common
}

// newRecurrent returns a stack of three LSTMs.
func newRecurrent() *recurrent {
	return &recurrent{layers: 3, unroll: 16, inputs: 256, hidden: 1024, classes: 1000,
		common: common{batch: 64, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}}
}

func (c *recurrent) depth() int { return c.layers }

func (c *recurrent) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 1024}, {"unroll", &c.unroll, 1, 4096}, {"inputs", &c.inputs, 1, 1 << 20}, {"hidden", &c.hidden, 1, 1 << 18}, {"classes", &c.classes, 2, 1 << 20},
		{"batch", &c.batch, 1, 1 << 20}, {name: "gru", to: &c.gru}, {name: "bidirectional", to: &c.bidirectional}, {name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(),
	}
}

func (c *recurrent) faults() faults.List {
	return faults.List{between("layers * unroll", int64(c.layers)*int64(c.unroll), 1, 1<<14)}
}

func (c *recurrent) forward(n *net) {
	xs := make([]tensor, c.unroll)
	var rows tensor
	n.within("input", 1, func() {
		frames := n.placeholder("frames", n.of(c.batch, int64(c.unroll), c.inputs))
		rows = n.batchSize(frames)
		for t := range xs {
			xs[t] = n.slice(frames, c.batch, c.inputs)
		}
	})
	for l := range c.layers {
		n.inLayer(l+1, func() {
			forward := c.run(n, "forward", xs, rows, false)
			if !c.bidirectional {
				xs = forward
				return
			}
			backward := c.run(n, "backward", xs, rows, true)
			xs = make([]tensor, c.unroll)
			for t := range xs {
				xs[t] = n.concat(1, forward[t], backward[t])
			}
		})
	}
	n.within("classifier", c.layers, func() {
		labels := n.placeholder("labels", ints(c.batch))
		mean := n.binary("Mul", n.addN(xs...), n.scalar())
		n.mean(n.crossEntropy(n.dense(mean, c.classes), labels))
	})
}

// run is one direction of a layer over xs, T of [B,in].
func (c *recurrent) run(n *net, name string, xs []tensor, rows tensor, reversed bool) []tensor {
	ys := make([]tensor, len(xs))
	n.sub(name, func() {
		step := c.lstm
		if c.gru {
			step = c.gated
		}
		next := step(n, n.dim(xs[0], 1), rows)
		for k := range xs {
			t := k
			if reversed {
				t = len(xs) - 1 - k
			}
			n.sub(stepName(t), func() { ys[t] = next(xs[t]) })
		}
	})
	return ys
}

// lstm returns the step of an LSTM, which keeps its state.
func (c *recurrent) lstm(n *net, in int64, rows tensor) func(x tensor) tensor {
	w, s := n.lstmVariables(in, c.hidden), n.lstmZero(rows, c.batch, c.hidden)
	return func(x tensor) tensor {
		s = n.lstmCell(x, s, w)
		return s.h
	}
}

// gated returns the step of a gated recurrent unit, which keeps its state.
func (c *recurrent) gated(n *net, in int64, rows tensor) func(x tensor) tensor {
	gates, gatesBias := n.variable("gates", in+c.hidden, 2*c.hidden), n.variable("gates_bias", 2*c.hidden)
	candidate, candidateBias := n.variable("candidate", in+c.hidden, c.hidden), n.variable("candidate_bias", c.hidden)
	h := n.zeros(rows, c.batch, c.hidden)
	return func(x tensor) tensor {
		g := n.split(n.unary("Sigmoid", n.bias(n.matmul(n.concat(1, x, h), gates), gatesBias)), 1, 2) // reset, update
		y := n.matmul(n.concat(1, x, n.binary("Mul", g[0], h)), candidate)
		y = n.unary("Tanh", n.bias(y, candidateBias))
		kept := n.binary("Mul", g[1], h)
		h = n.binary("Add", kept, n.binary("Mul", n.binary("Sub", n.scalar(), g[1]), y))
		return h
	}
}
