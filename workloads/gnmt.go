package workloads

import (
	"placer/graph"
	"placer/graph/train"
	"placer/internal/faults"
)

// gnmt is Google's neural machine translation (Wu et al., Google's Neural Machine
// Translation System): a stack of LSTM layers as encoder, the first of them
// bidirectional, a stack as decoder whose bottom layer attends to the encoder's
// outputs, the context fed to all decoder layers, residual connections from the
// third layer on, and a softmax at every target step. Encoder layer l and decoder
// layer l are layer l; the embeddings belong to the first, attention and softmax to
// the last.
type gnmt struct {
	layers int   // of the encoder, and as many of the decoder; at least 1
	source int   // time steps of the encoder
	target int   // time steps of the decoder
	hidden int64 // also the width of embeddings and of the attention
	vocab  int64 // of each language
	// dropout puts a dropout op on every cell's input.
	dropout bool
	common
}

// newGNMT returns the papers' setting for a number of layers.
func newGNMT(layers int) *gnmt {
	return &gnmt{layers: layers, source: 40, target: 40, hidden: 1024, vocab: 32000, dropout: true,
		common: common{batch: 64, train: train.Config{Optimizer: train.Adam, ClipGlobalNorm: true}}}
}

func (c *gnmt) depth() int { return c.layers }

func (c *gnmt) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 1024}, {"source", &c.source, 1, 4096}, {"target", &c.target, 1, 4096}, {"batch", &c.batch, 1, 1 << 20},
		{"hidden", &c.hidden, 1, 1 << 20}, {"vocab", &c.vocab, 2, 1 << 28}, {name: "dropout", to: &c.dropout}, c.optimizer(),
	}
}

func (c *gnmt) faults() faults.List {
	return faults.List{between("layers * (source + target)", int64(c.layers)*int64(c.source+c.target), 2, 1<<14)}
}

// residualFrom is the first layer whose input is added to its output.
const residualFrom = 3

func (c *gnmt) forward(n *net) {
	n.within("gnmt", 1, func() {
		source := n.placeholder("source", ints(c.batch, int64(c.source)))
		rows := n.batchSize(source)
		outputs, states := c.encoder(n, source, rows)
		c.decoder(n, outputs, states, rows)
	})
}

// cell is one step of one layer: dropout on the input, the LSTM, and from the
// third layer on the residual connection around both.
func (c *gnmt) cell(n *net, l int, x, residual tensor, s lstmState, w lstmWeights) (tensor, lstmState) {
	if c.dropout {
		x = n.dropout(x)
	}
	s = n.lstmCell(x, s, w)
	if l+1 >= residualFrom {
		return n.binary("Add", s.h, residual), s
	}
	return s.h, s
}

// encoder returns the outputs of the top layer, S of [B,H], and the last state
// of each layer.
func (c *gnmt) encoder(n *net, source, rows tensor) (xs []tensor, last []lstmState) {
	batch, hidden := c.batch, c.hidden
	n.within("encoder", 1, func() {
		table := n.variable("embedding", c.vocab, hidden)
		for t := range c.source {
			n.within(stepName(t), 1, func() { xs = append(xs, n.embed(table, n.step(source))) })
		}
		for l := range c.layers {
			n.inLayer(l+1, func() {
				if l == 0 {
					forward, s := c.unrolled(n, "forward", l, xs, rows, false)
					backward, _ := c.unrolled(n, "backward", l, xs, rows, true)
					for t := range xs {
						xs[t] = n.concat(1, forward[t], backward[t])
					}
					last = append(last, s)
					return
				}
				ys, s := c.unrolled(n, "cells", l, xs, rows, false)
				xs, last = ys, append(last, s)
			})
		}
		if c.layers == 1 { // the attention wants the width of one direction
			w := n.variable("projection", 2*hidden, hidden)
			for t := range xs {
				xs[t] = n.matmul(xs[t], w)
			}
		}
	})
	mustEqual("encoder outputs", n.shape(xs[0]), graph.Shape{batch, hidden}, n.dim(xs[0], 1) == hidden)
	return xs, last
}

// unrolled runs one layer over xs, from the last to the first when reversed.
func (c *gnmt) unrolled(n *net, name string, l int, xs []tensor, rows tensor, reversed bool) (ys []tensor, s lstmState) {
	ys = make([]tensor, len(xs))
	n.within(name, l+1, func() {
		w := n.lstmVariables(n.dim(xs[0], 1), c.hidden)
		s = n.lstmZero(rows, c.batch, c.hidden)
		for k := range xs {
			t := k
			if reversed {
				t = len(xs) - 1 - k
			}
			n.within(stepName(t), l+1, func() { ys[t], s = c.cell(n, l, xs[t], xs[t], s, w) })
		}
	})
	return ys, s
}

// decoder adds the target side and the loss.
func (c *gnmt) decoder(n *net, outputs []tensor, states []lstmState, rows tensor) {
	batch, hidden, vocab := c.batch, c.hidden, c.vocab
	n.within("decoder", 1, func() {
		input := n.placeholder("input", ints(batch, int64(c.target)))
		table := n.variable("embedding", vocab, hidden)
		cells := make([]lstmWeights, c.layers)
		for l := range cells {
			n.inLayer(l+1, func() { cells[l] = n.lstmVariables(2*hidden, hidden) })
		}
		var context tensor
		var loss tokenLoss
		var m memory
		n.within("attention", c.layers, func() {
			lengths := n.placeholder("lengths", ints(batch))
			m = n.attentionMemory(outputs, lengths)
			context = n.zeros(rows, batch, hidden)
		})
		n.within("softmax", c.layers, func() {
			loss.target = n.placeholder("target", ints(batch, int64(c.target)))
			loss.w, loss.b = n.variable("w", hidden, vocab), n.variable("b", vocab)
		})
		for t := range c.target {
			n.within(stepName(t), 1, func() {
				x := n.embed(table, n.step(input))
				for l := range cells {
					n.inLayer(l+1, func() {
						x, states[l] = c.cell(n, l, n.concat(1, x, context), x, states[l], cells[l])
					})
					if l == 0 {
						n.within("attention", c.layers, func() { context = n.attend(&m, x) })
					}
				}
				n.within("softmax", c.layers, func() {
					loss.step(n, x)
				})
			})
		}
		n.within("loss", c.layers, func() { loss.mean(n) })
	})
}
