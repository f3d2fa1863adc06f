package workloads

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/graph/train"
)

// RNNLMConfig describes a recurrent language model (Zaremba et al., Recurrent
// Neural Network Regularization; Jozefowicz et al., Exploring the Limits of
// Language Modeling): an embedding, a stack of LSTM layers with dropout between
// them, and a softmax over the whole vocabulary at every time step, unrolled.
type RNNLMConfig struct {
	Layers int // at least 1
	Unroll int // time steps
	Batch  int
	Hidden int // also the embedding's width
	Vocab  int
	// Dropout puts a dropout op on every cell's input and on the last layer's output.
	Dropout bool
	Train   train.Config
}

// DefaultRNNLM returns the papers' setting for a number of layers.
func DefaultRNNLM(layers int) RNNLMConfig {
	return RNNLMConfig{Layers: layers, Unroll: 35, Batch: 64, Hidden: 2048, Vocab: 10000, Dropout: true,
		Train: train.Config{Optimizer: train.Adam, ClipGlobalNorm: true}}
}

// Validate reports every fault of c.
func (c RNNLMConfig) Validate() error {
	return errors.Join(between("layers", c.Layers, 1, 1024), between("unroll", c.Unroll, 1, 4096), between("batch", c.Batch, 1, 1<<20),
		between("hidden", c.Hidden, 1, 1<<20), between("vocab", c.Vocab, 2, 1<<28), between("layers * unroll", c.Layers*c.Unroll, 1, 1<<14), c.Train.Validate())
}

// RNNLM returns the training graph of c. Layer l of the model is layer l; the
// embedding belongs to the first, the softmax to the last.
func RNNLM(c RNNLMConfig) (*graph.Graph, error) { return c.generate(fmt.Sprintf("rnnlm%d", c.Layers)) }

// Build returns RNNLM(c).
func (c RNNLMConfig) Build() (*graph.Graph, error) { return RNNLM(c) }

func (c RNNLMConfig) generate(name string) (*graph.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("rnnlm: %w", err)
	}
	n := newNet(name, graph.F32)
	n.dynamic = !c.Train.StaticShapes
	c.forward(n)
	return n.training(c.Train)
}

func rnnlmSpecs() (specs []Spec) {
	for _, layers := range []int{2, 4, 8} {
		s := Spec{Name: fmt.Sprintf("rnnlm%d", layers), Family: "rnnlm", Layers: layers, GPUs: layers,
			Note:   "vocabulary 10,000 with a full softmax, 35 steps",
			params: DefaultRNNLM(layers)}
		if layers == 2 {
			s.PublishedOps = 9021
		}
		specs = append(specs, s)
	}
	return specs
}

func (c RNNLMConfig) forward(n *net) {
	batch, steps, hidden, vocab := int64(c.Batch), int64(c.Unroll), int64(c.Hidden), int64(c.Vocab)
	input := n.placeholder("input", ints(batch, steps))
	target := n.placeholder("target", ints(batch, steps))
	n.b.At(n.b.TensorAt(target).Producer).Layer = int32(c.Layers)
	rows := n.batchSize(input)

	var table tensor
	n.within("embedding", 1, func() { table = n.variable("table", vocab, hidden) })
	cells := make([]lstmWeights, c.Layers)
	states := make([]lstmState, c.Layers)
	for l := range cells {
		n.within(layerName(l+1), l+1, func() {
			cells[l] = n.lstmVariables(hidden, hidden)
			states[l] = n.lstmZero(rows, batch, hidden)
		})
	}
	var w, b tensor
	n.within("softmax", c.Layers, func() { w, b = n.variable("w", hidden, vocab), n.variable("b", vocab) })

	var losses, weights []tensor
	for t := range c.Unroll {
		n.within(stepName(t), 1, func() {
			var x tensor
			n.within("embedding", 1, func() { x = n.embed(table, n.step(input)) })
			for l := range cells {
				n.within(layerName(l+1), l+1, func() {
					if c.Dropout {
						x = n.dropout(x)
					}
					states[l] = n.lstmCell(x, states[l], cells[l])
					x = states[l].h
				})
			}
			n.within("softmax", c.Layers, func() {
				if c.Dropout {
					x = n.dropout(x)
				}
				logits := n.bias(n.matmul(x, w), b)
				y := n.step(target)
				weight := n.ones(y)
				losses, weights = append(losses, n.softmaxLoss(logits, y, weight)), append(weights, weight)
			})
		})
	}
	n.within("loss", c.Layers, func() { n.meanOver(losses, weights) })
}
