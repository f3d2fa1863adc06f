package workloads

import (
	"placer/graph"
	"placer/graph/train"
	"placer/internal/faults"
)

// gpt is a decoder-only language model of the kind of GPT-2 and GPT-3 (Radford et al.,
// Language Models are Unsupervised Multitask Learners; Brown et al., arXiv:2005.14165):
// learned positions, layer norms before each part, attention and a feed-forward part with
// biases, and an output whose weights are the embedding's. Layer l of the model is layer l;
// the embedding belongs to the first, the output to the last.
type gpt struct {
	layers int
	hidden int64
	heads  int64 // divides hidden
	ffn    int64
	vocab  int64
	seq    int64
	// dropout puts dropout on the embedding, on attention's shares where they are stored, and on
	// what each part adds, as Megatron-LM does.
	dropout bool
	common
}

// newGPT returns the sizes of the smallest GPT-2, one sequence of 1,024.
func newGPT() *gpt {
	return &gpt{layers: 12, hidden: 768, heads: 12, ffn: 3072, vocab: 50257, seq: 1024,
		common: common{batch: 1, dtype: graph.BF16, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true, DenseTables: true}}}
}

func (c *gpt) depth() int { return c.layers }

func (c *gpt) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 1024}, {"hidden", &c.hidden, 1, 1 << 18}, {"heads", &c.heads, 1, 1 << 12}, {"ffn", &c.ffn, 1, 1 << 20}, {"vocab", &c.vocab, 2, 1 << 24},
		{"seq", &c.seq, 1, 1 << 18}, {"batch", &c.batch, 1, 1 << 16}, {name: "dropout", to: &c.dropout}, {name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(), c.attends(),
	}
}

func (c *gpt) faults() (errs faults.List) {
	errs.If(c.heads > 0 && c.hidden%c.heads != 0, "hidden is %d, want a multiple of the %d heads", c.hidden, c.heads)
	return errs
}

func (c *gpt) forward(n *net) {
	batch, seq, d := c.batch, c.seq, c.hidden
	dropout := func(x tensor) tensor {
		if c.dropout {
			return n.masked(x)
		}
		return x
	}
	var x, table, mask tensor
	n.within("embedding", 1, func() {
		input := n.placeholder("input", ints(batch, seq))
		table = n.variable("table", c.vocab, d)
		tokens := n.reshape(n.embed(table, n.reshape(input, batch*seq)), batch, seq, d)
		x = dropout(n.reshape(n.binary("Add", tokens, n.variable("positions", seq, d)), batch*seq, d))
		if c.scores == Products {
			mask = n.constant(n.of(seq, seq))
		}
	})
	for l := range c.layers {
		n.inLayer(l+1, func() {
			y := n.norm(x)
			n.within("attention", l+1, func() {
				y = n.selfAttention(y, selfAttention{batch: batch, tokens: seq, heads: c.heads, scores: c.scores, causal: true, mask: mask, dropout: c.dropout})
			})
			x = n.binary("Add", x, dropout(y))
			y = n.norm(x)
			n.within("ffn", l+1, func() { y = n.dense(n.unary("Gelu", n.dense(y, c.ffn)), d) })
			x = n.binary("Add", x, dropout(y))
		})
	}
	n.within("output", c.layers, func() {
		target := n.placeholder("target", ints(batch, seq))
		logits := n.cast(n.batchMatmul(n.norm(x), table, true), graph.F32)
		n.mean(n.crossEntropy(logits, n.reshape(target, batch*seq)))
	})
}
