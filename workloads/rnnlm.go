package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// rnnlm is a recurrent language model (Zaremba et al., Recurrent Neural Network
// Regularization; Jozefowicz et al., Exploring the Limits of Language Modeling): an
// embedding, a stack of LSTM layers with dropout between them, and a softmax over
// the whole vocabulary at every time step, unrolled. Layer l of the model is layer
// l; the embedding belongs to the first, the softmax to the last.
type rnnlm struct {
	layers int   // at least 1
	unroll int   // time steps
	hidden int64 // also the embedding's width
	vocab  int64
	// dropout puts a dropout op on every cell's input and on the last layer's output.
	dropout bool
	common
}

// newRNNLM returns the papers' setting for a number of layers.
func newRNNLM(layers int) *rnnlm {
	return &rnnlm{layers: layers, unroll: 35, hidden: 2048, vocab: 10000, dropout: true,
		common: common{batch: 64, train: train.Config{Optimizer: train.Adam, ClipGlobalNorm: true}}}
}

func (c *rnnlm) depth() int { return c.layers }

func (c *rnnlm) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 1024}, {"unroll", &c.unroll, 1, 4096}, {"batch", &c.batch, 1, 1 << 20}, {"hidden", &c.hidden, 1, 1 << 20},
		{"vocab", &c.vocab, 2, 1 << 28}, {name: "dropout", to: &c.dropout}, c.optimizer(),
	}
}

func (c *rnnlm) faults() faults.List {
	return faults.List{between("layers * unroll", int64(c.layers)*int64(c.unroll), 1, 1<<14)}
}

func (c *rnnlm) forward(n *net) {
	batch, steps, hidden, vocab := c.batch, int64(c.unroll), c.hidden, c.vocab
	input := n.placeholder("input", ints(batch, steps))
	target := n.lastPlaceholder("target", c.layers, batch, steps)
	rows := n.batchSize(input)

	var table tensor
	n.within("embedding", 1, func() { table = n.variable("table", vocab, hidden) })
	cells := make([]lstmWeights, c.layers)
	states := make([]lstmState, c.layers)
	for l := range cells {
		n.inLayer(l+1, func() {
			cells[l] = n.lstmVariables(hidden, hidden)
			states[l] = n.lstmZero(rows, batch, hidden)
		})
	}
	loss := tokenLoss{target: target}
	n.within("softmax", c.layers, func() { loss.w, loss.b = n.variable("w", hidden, vocab), n.variable("b", vocab) })
	for t := range c.unroll {
		n.within(stepName(t), 1, func() {
			var x tensor
			n.within("embedding", 1, func() { x = n.embed(table, n.step(input)) })
			for l := range cells {
				n.inLayer(l+1, func() {
					if c.dropout {
						x = n.dropout(x)
					}
					states[l] = n.lstmCell(x, states[l], cells[l])
					x = states[l].h
				})
			}
			n.within("softmax", c.layers, func() {
				if c.dropout {
					x = n.dropout(x)
				}
				loss.step(n, x)
			})
		})
	}
	n.within("loss", c.layers, func() { loss.mean(n) })
}
