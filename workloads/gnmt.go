package workloads

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/graph/train"
)

// GNMTConfig describes Google's neural machine translation (Wu et al., Google's
// Neural Machine Translation System): a stack of LSTM layers as encoder, the
// first of them bidirectional, a stack as decoder whose bottom layer attends to
// the encoder's outputs, the context fed to all decoder layers, residual
// connections from the third layer on, and a softmax at every target step.
type GNMTConfig struct {
	Layers int // of the encoder, and as many of the decoder; at least 1
	Source int // time steps of the encoder
	Target int // time steps of the decoder
	Batch  int
	Hidden int // also the width of embeddings and of the attention
	Vocab  int // of each language
	// Dropout puts a dropout op on every cell's input.
	Dropout bool
	Train   train.Config
}

// DefaultGNMT returns the papers' setting for a number of layers.
func DefaultGNMT(layers int) GNMTConfig {
	return GNMTConfig{Layers: layers, Source: 40, Target: 40, Batch: 64, Hidden: 1024, Vocab: 32000, Dropout: true,
		Train: train.Config{Optimizer: train.Adam, ClipGlobalNorm: true}}
}

// Validate reports every fault of c.
func (c GNMTConfig) Validate() error {
	return errors.Join(between("layers", c.Layers, 1, 1024), between("source", c.Source, 1, 4096), between("target", c.Target, 1, 4096),
		between("batch", c.Batch, 1, 1<<20), between("hidden", c.Hidden, 1, 1<<20), between("vocab", c.Vocab, 2, 1<<28),
		between("layers * (source + target)", c.Layers*(c.Source+c.Target), 2, 1<<14), c.Train.Validate())
}

// residualFrom is the first layer whose input is added to its output.
const residualFrom = 3

// GNMT returns the training graph of c. Encoder layer l and decoder layer l are
// layer l; the embeddings belong to the first, attention and softmax to the
// last.
func GNMT(c GNMTConfig) (*graph.Graph, error) { return c.generate(fmt.Sprintf("gnmt%d", c.Layers)) }

// Build returns GNMT(c).
func (c GNMTConfig) Build() (*graph.Graph, error) { return GNMT(c) }

func (c GNMTConfig) generate(name string) (*graph.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("gnmt: %w", err)
	}
	n := newNet(name, graph.F32)
	n.dynamic = !c.Train.StaticShapes
	n.within("gnmt", 1, func() {
		source := n.placeholder("source", ints(int64(c.Batch), int64(c.Source)))
		rows := n.batchSize(source)
		outputs, states := c.encoder(n, source, rows)
		c.decoder(n, outputs, states, rows)
	})
	return n.training(c.Train)
}

func gnmtSpecs() (specs []Spec) {
	for k, layers := range []int{2, 4, 8} {
		specs = append(specs, Spec{Name: fmt.Sprintf("gnmt%d", layers), Family: "gnmt", Layers: layers, GPUs: layers,
			PublishedOps: [...]int{28044, 46600, 83712}[k],
			Note:         "vocabularies of 32,000, sentences of 40, normalised Bahdanau attention",
			params:       DefaultGNMT(layers)})
	}
	return specs
}

// cell is one step of one layer: dropout on the input, the LSTM, and from the
// third layer on the residual connection around both.
func (c GNMTConfig) cell(n *net, l int, x, residual tensor, s lstmState, w lstmWeights) (tensor, lstmState) {
	if c.Dropout {
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
func (c GNMTConfig) encoder(n *net, source, rows tensor) (xs []tensor, last []lstmState) {
	batch, hidden := int64(c.Batch), int64(c.Hidden)
	n.within("encoder", 1, func() {
		table := n.variable("embedding", int64(c.Vocab), hidden)
		for t := range c.Source {
			n.within(stepName(t), 1, func() { xs = append(xs, n.embed(table, n.step(source))) })
		}
		for l := range c.Layers {
			n.within(layerName(l+1), l+1, func() {
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
		if c.Layers == 1 { // the attention wants the width of one direction
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
func (c GNMTConfig) unrolled(n *net, name string, l int, xs []tensor, rows tensor, reversed bool) (ys []tensor, s lstmState) {
	ys = make([]tensor, len(xs))
	n.within(name, l+1, func() {
		w := n.lstmVariables(n.dim(xs[0], 1), int64(c.Hidden))
		s = n.lstmZero(rows, int64(c.Batch), int64(c.Hidden))
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
func (c GNMTConfig) decoder(n *net, outputs []tensor, states []lstmState, rows tensor) {
	batch, hidden, vocab := int64(c.Batch), int64(c.Hidden), int64(c.Vocab)
	n.within("decoder", 1, func() {
		input := n.placeholder("input", ints(batch, int64(c.Target)))
		table := n.variable("embedding", vocab, hidden)
		cells := make([]lstmWeights, c.Layers)
		for l := range cells {
			n.within(layerName(l+1), l+1, func() { cells[l] = n.lstmVariables(2*hidden, hidden) })
		}
		var target, w, b, context tensor
		var m memory
		n.within("attention", c.Layers, func() {
			lengths := n.placeholder("lengths", ints(batch))
			m = n.attentionMemory(outputs, lengths)
			context = n.zeros(rows, batch, hidden)
		})
		n.within("softmax", c.Layers, func() {
			target = n.placeholder("target", ints(batch, int64(c.Target)))
			w, b = n.variable("w", hidden, vocab), n.variable("b", vocab)
		})
		var losses, weights []tensor
		for t := range c.Target {
			n.within(stepName(t), 1, func() {
				x := n.embed(table, n.step(input))
				for l := range cells {
					n.within(layerName(l+1), l+1, func() {
						x, states[l] = c.cell(n, l, n.concat(1, x, context), x, states[l], cells[l])
					})
					if l == 0 {
						n.within("attention", c.Layers, func() { context = n.attend(&m, x) })
					}
				}
				n.within("softmax", c.Layers, func() {
					logits := n.bias(n.matmul(x, w), b)
					y := n.step(target)
					weight := n.ones(y)
					losses, weights = append(losses, n.softmaxLoss(logits, y, weight)), append(weights, weight)
				})
			})
		}
		n.within("loss", c.Layers, func() { n.meanOver(losses, weights) })
	})
}
