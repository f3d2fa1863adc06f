package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// seq2seq translates by one stack of LSTMs as encoder and one as decoder, whose top
// attends to the encoder's outputs at every step (Bahdanau et al., arXiv:1409.0473;
// Luong et al., arXiv:1508.04025), unrolled. Encoder layer l is layer l, decoder layer l
// is layer encoder + l; attention and softmax belong to the last.
type seq2seq struct {
	encoder int   // layers
	decoder int   // layers
	source  int   // time steps of the encoder
	target  int   // time steps of the decoder
	hidden  int64 // also the width of embeddings
	vocab   int64 // of each language
	common
}

// newSeq2Seq returns two layers on either side.
func newSeq2Seq() *seq2seq {
	return &seq2seq{encoder: 2, decoder: 2, source: 12, target: 12, hidden: 512, vocab: 16000,
		common: common{batch: 64, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}}
}

func (c *seq2seq) depth() int { return c.encoder + c.decoder }

func (c *seq2seq) settings() []setting {
	return []setting{
		{"encoder", &c.encoder, 1, 1024}, {"decoder", &c.decoder, 1, 1024}, {"source", &c.source, 1, 4096}, {"target", &c.target, 1, 4096}, {"batch", &c.batch, 1, 1 << 20},
		{"hidden", &c.hidden, 1, 1 << 18}, {"vocab", &c.vocab, 2, 1 << 28}, c.optimizer(),
	}
}

func (c *seq2seq) faults() faults.List {
	steps := int64(c.encoder)*int64(c.source) + int64(c.decoder)*int64(c.target)
	return faults.List{between("encoder * source + decoder * target", steps, 2, 1<<14)}
}

func (c *seq2seq) forward(n *net) {
	xs := make([]tensor, c.source)
	var rows tensor
	n.within("source", 1, func() {
		ids, table := n.placeholder("ids", ints(c.batch, int64(c.source))), n.variable("embedding", c.vocab, c.hidden)
		rows = n.batchSize(ids)
		for t := range xs {
			xs[t] = n.embed(table, n.step(ids))
		}
	})
	for l := range c.encoder {
		n.inLayer(l+1, func() {
			w, s := n.lstmVariables(c.hidden, c.hidden), n.lstmZero(rows, c.batch, c.hidden)
			for t := range xs {
				n.sub(stepName(t), func() { s = n.lstmCell(xs[t], s, w) })
				xs[t] = s.h
			}
		})
	}
	last := c.depth()
	var m memory
	var loss tokenLoss
	var join tensor
	n.within("attention", last, func() {
		m = n.attentionMemory(xs, n.placeholder("lengths", ints(c.batch)))
		join = n.variable("join", 2*c.hidden, c.hidden)
	})
	n.within("softmax", last, func() {
		loss.target = n.placeholder("target", ints(c.batch, int64(c.target)))
		loss.w, loss.b = n.variable("w", c.hidden, c.vocab), n.variable("b", c.vocab)
	})
	ys := make([]tensor, c.target)
	n.within("target", c.encoder+1, func() {
		ids, table := n.placeholder("ids", ints(c.batch, int64(c.target))), n.variable("embedding", c.vocab, c.hidden)
		for t := range ys {
			ys[t] = n.embed(table, n.step(ids))
		}
	})
	for l := range c.decoder {
		n.inLayer(c.encoder+l+1, func() {
			w, s := n.lstmVariables(c.hidden, c.hidden), n.lstmZero(rows, c.batch, c.hidden)
			for t := range ys {
				n.sub(stepName(t), func() { s = n.lstmCell(ys[t], s, w) })
				ys[t] = s.h
			}
		})
	}
	n.within("output", last, func() {
		for t := range ys {
			n.sub(stepName(t), func() {
				y := n.unary("Tanh", n.matmul(n.concat(1, ys[t], n.attend(&m, ys[t])), join))
				loss.step(n, y)
			})
		}
		loss.mean(n)
	})
}
