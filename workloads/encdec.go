package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// transformer is an encoder and a decoder of attention, as for translation (Vaswani et
// al., arXiv:1706.03762; norms before each part): every decoder layer attends to its own
// positions and to the encoder's outputs. Encoder layer l is layer l, decoder layer l is
// layer encoder + l; each embedding belongs to the first layer that reads it, the output
// to the last.
type transformer struct {
	encoder, decoder int   // layers
	hidden           int64 // a multiple of heads
	heads            int64
	ffn              int64
	source, target   int64 // tokens of a sequence on either side
	vocab            int64
	common
}

// newTransformer returns the base model of Vaswani et al.
func newTransformer() *transformer {
	return &transformer{encoder: 6, decoder: 6, hidden: 512, heads: 8, ffn: 2048, source: 64, target: 64, vocab: 37000,
		common: common{batch: 64, scores: Products, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}}
}

func (c *transformer) depth() int { return c.encoder + c.decoder }

func (c *transformer) settings() []setting {
	return []setting{
		{"encoder", &c.encoder, 1, 1024}, {"decoder", &c.decoder, 1, 1024}, {"hidden", &c.hidden, 1, 1 << 18}, {"heads", &c.heads, 1, 1 << 12}, {"ffn", &c.ffn, 1, 1 << 20},
		{"source", &c.source, 1, 1 << 18}, {"target", &c.target, 1, 1 << 18}, {"vocab", &c.vocab, 2, 1 << 24}, {"batch", &c.batch, 1, 1 << 16}, {name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(), c.attends(),
	}
}

func (c *transformer) faults() (errs faults.List) {
	errs.If(c.heads > 0 && c.hidden%c.heads != 0, "hidden is %d, want a multiple of the %d heads", c.hidden, c.heads)
	return errs
}

func (c *transformer) forward(n *net) {
	embed := func(name string, layer int, tokens int64) (x tensor) { // [B*S,d]
		n.within(name, layer, func() {
			ids := n.placeholder("ids", ints(c.batch, tokens))
			x = n.embed(n.variable("table", c.vocab, c.hidden), n.reshape(ids, c.batch*tokens))
		})
		return x
	}
	x := embed("source", 1, c.source)
	for l := range c.encoder {
		n.inLayer(l+1, func() {
			x = n.residual(x, func(y tensor) tensor { return c.attend(n, y, y, c.source, c.source) })
			x = n.residual(x, func(y tensor) tensor { return c.feedForward(n, y) })
		})
	}
	memory, y := x, embed("target", c.encoder+1, c.target)
	for l := range c.decoder {
		n.inLayer(c.encoder+l+1, func() {
			y = n.residual(y, func(y tensor) tensor { return c.attend(n, y, y, c.target, c.target) })
			y = n.residual(y, func(y tensor) tensor { return c.attend(n, y, memory, c.target, c.source) })
			y = n.residual(y, func(y tensor) tensor { return c.feedForward(n, y) })
		})
	}
	n.within("output", c.depth(), func() {
		labels := n.placeholder("labels", ints(c.batch, c.target))
		logits := n.matmul(n.norm(y), n.variable("weights", c.hidden, c.vocab))
		n.mean(n.crossEntropy(logits, n.reshape(labels, c.batch*c.target)))
	})
}

// residual adds what f makes of x, normalised, to x.
func (n *net) residual(x tensor, f func(y tensor) tensor) tensor {
	n.sub("part", func() { x = n.binary("Add", x, f(n.norm(x))) })
	return x
}

// attend is attention of x, [B*Q,d], to y, [B*K,d].
func (c *transformer) attend(n *net, x, y tensor, queries, keys int64) tensor {
	d, h := c.hidden, c.heads
	split := func(x tensor, name string, tokens int64) tensor { // [B,heads,S,d/heads]
		return n.heads(n.matmul(x, n.variable(name, d, d)), c.scores, c.batch, tokens, h)
	}
	var z tensor
	if c.scores == OneKernel {
		z = n.flash(split(x, "query", queries), split(y, "key", keys), split(y, "value", keys), false)
	} else {
		score := n.batchMatmul(split(x, "query", queries), split(y, "key", keys), true)
		p := n.softmax(n.binary("Mul", score, n.scalar()))
		z = n.batchMatmul(p, split(y, "value", keys), false)
	}
	return n.matmul(n.joined(z, c.scores), n.variable("out", d, d))
}

func (c *transformer) feedForward(n *net, x tensor) tensor {
	return n.dense(n.unary("Relu", n.dense(x, c.ffn)), c.hidden)
}
