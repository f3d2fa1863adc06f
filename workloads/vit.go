package workloads

import (
	"placer/graph"
	"placer/graph/train"
	"placer/internal/faults"
)

// vit is a vision transformer (Dosovitskiy et al., An Image is Worth 16x16 Words).
// Layer l of the model is layer l; the patches belong to the first, the classifier
// to the last.
type vit struct {
	layers  int
	hidden  int64
	heads   int64 // divides hidden
	ffn     int64
	size    int64 // height and width of the images
	patch   int64 // divides size
	classes int64
	common
}

// newViT returns the sizes of ViT-B/16.
func newViT() *vit {
	return &vit{layers: 12, hidden: 768, heads: 12, ffn: 3072, size: 224, patch: 16, classes: 1000,
		common: common{batch: 64, dtype: graph.BF16, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}}
}

// newViTL returns the sizes of ViT-L/16.
func newViTL() *vit {
	c := newViT()
	c.layers, c.hidden, c.heads, c.ffn = 24, 1024, 16, 4096
	return c
}

func (c *vit) depth() int { return c.layers }

func (c *vit) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 1024}, {"hidden", &c.hidden, 1, 1 << 18}, {"heads", &c.heads, 1, 1 << 12}, {"ffn", &c.ffn, 1, 1 << 20}, {"batch", &c.batch, 1, 1 << 16},
		{"size", &c.size, 1, 1 << 14}, {"patch", &c.patch, 1, 1 << 12}, {"classes", &c.classes, 2, 1 << 20}, {name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(), c.attends(),
	}
}

func (c *vit) faults() (errs faults.List) {
	errs.If(c.heads > 0 && c.hidden%c.heads != 0, "hidden is %d, want a multiple of the %d heads", c.hidden, c.heads)
	errs.If(c.patch > 0 && c.size%c.patch != 0, "size is %d, want a multiple of the patch, %d", c.size, c.patch)
	return errs
}

func (c *vit) forward(n *net) {
	batch, size, p, d := c.batch, c.size, c.patch, c.hidden
	patches := (size / p) * (size / p)
	tokens := patches + 1
	var x tensor // [B*S,d]
	n.within("patches", 1, func() {
		images := n.placeholder("images", n.of(batch, size, size, 3))
		y := n.bias(n.conv2d(images, n.variable("weights", p, p, 3, d), p, valid), n.variable("biases", d))
		y = n.reshape(y, batch, patches, d)
		class := n.op("Tile", n.of(batch, 1, d), n.variable("class", 1, 1, d), n.vector(3))
		y = n.binary("Add", n.concat(1, class, y), n.variable("positions", 1, tokens, d))
		x = n.reshape(y, batch*tokens, d)
	})
	for l := range c.layers {
		n.inLayer(l+1, func() {
			y := n.norm(x)
			n.within("attention", l+1, func() {
				y = n.selfAttention(y, selfAttention{batch: batch, tokens: tokens, heads: c.heads, scores: c.scores})
			})
			x = n.binary("Add", x, y)
			y = n.norm(x)
			n.within("ffn", l+1, func() { y = n.dense(n.unary("Gelu", n.dense(y, c.ffn)), d) })
			x = n.binary("Add", x, y)
		})
	}
	n.within("classifier", c.layers, func() {
		first := n.slice(n.reshape(n.norm(x), batch, tokens, d), batch, d)
		logits := n.cast(n.dense(first, c.classes), graph.F32)
		n.mean(n.crossEntropy(logits, n.placeholder("labels", ints(batch))))
	})
}

// selfAttention is attention among the tokens of each sample, x of [B*S,d], with a mask,
// [S,S], that is added to the scores where there is one; causal attention in one kernel needs
// none.
func (n *net) selfAttention(x tensor, a selfAttention) tensor {
	d := n.dim(x, 1)
	split := func(t tensor) tensor { return n.heads(t, a.scores, a.batch, a.tokens, a.heads) }
	qkv := n.split(n.dense(x, 3*d), 1, 3)
	var y tensor
	if a.scores == OneKernel {
		y = n.flash(split(qkv[0]), split(qkv[1]), split(qkv[2]), a.causal)
	} else {
		score := n.binary("Mul", n.batchMatmul(split(qkv[0]), split(qkv[1]), true), n.scalar())
		if a.causal {
			score = n.binary("Add", score, a.mask)
		}
		shares := n.softmax(score)
		if a.dropout {
			shares = n.masked(shares)
		}
		y = n.batchMatmul(shares, split(qkv[2]), false)
	}
	return n.dense(n.joined(y, a.scores), d)
}

// selfAttention is what attention among the tokens of each sample needs.
type selfAttention struct {
	batch, tokens, heads int64
	scores               Scores
	causal               bool
	mask                 tensor // of causal attention whose scores are stored
	dropout              bool   // of the shares, where scores are stored
}

// dense is a product with a trained matrix and a trained bias.
func (n *net) dense(x tensor, out int64) tensor {
	return n.bias(n.matmul(x, n.variable("weights", n.dim(x, 1), out)), n.variable("biases", out))
}

// norm is layer normalisation of x, [R,d], as one kernel, which saves mean and
// 1/deviation of each row.
func (n *net) norm(x tensor) tensor {
	rows, d := n.dim(x, 0), n.dim(x, 1)
	in := []tensor{x, n.variable("gamma", d), n.variable("beta", d)}
	op := n.add("LayerNormalization", "LayerNormalization", in, n.like(x), n.of(rows, 1), n.of(rows, 1))
	return n.b.Output(op, 0)
}
