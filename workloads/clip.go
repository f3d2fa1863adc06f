package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// clip compares images with captions by two towers of attention that meet in the loss
// alone (Radford et al., arXiv:2103.00020). Layers of the images' tower are the first,
// those of the captions' tower follow; the products of all pairs belong to the last.
type clip struct {
	images, captions int   // layers of the towers
	hidden           int64 // of the images' tower, a multiple of heads; captions have half of it
	heads            int64
	tokens           int64 // of a caption
	size, patch      int64 // of the images, and of their patches
	vocab            int64
	joint            int64 // width of what is compared
	common
}

// newCLIP returns a small pair of towers.
func newCLIP() *clip {
	return &clip{images: 6, captions: 6, hidden: 768, heads: 8, tokens: 77, size: 224, patch: 32, vocab: 49408, joint: 512,
		common: common{batch: 64, scores: Products, train: train.Config{Optimizer: train.Adam, StaticShapes: true}}}
}

func (c *clip) depth() int { return c.images + c.captions }

func (c *clip) settings() []setting {
	return []setting{
		{"images", &c.images, 1, 1024}, {"captions", &c.captions, 1, 1024}, {"hidden", &c.hidden, 2, 1 << 18}, {"heads", &c.heads, 1, 1 << 12}, {"tokens", &c.tokens, 1, 1 << 16},
		{"size", &c.size, 1, 1 << 14}, {"patch", &c.patch, 1, 1 << 12}, {"vocab", &c.vocab, 2, 1 << 24}, {"joint", &c.joint, 1, 1 << 16}, {"batch", &c.batch, 1, 1 << 16},
		{name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(), c.attends(),
	}
}

func (c *clip) faults() (errs faults.List) {
	errs.If(c.heads > 0 && c.hidden%(2*c.heads) != 0, "hidden is %d, want a multiple of twice the %d heads", c.hidden, c.heads)
	errs.If(c.patch > 0 && c.size%c.patch != 0, "size is %d, want a multiple of the patch, %d", c.size, c.patch)
	return errs
}

func (c *clip) forward(n *net) {
	var image, caption tensor
	patches := (c.size / c.patch) * (c.size / c.patch)
	n.within("patches", 1, func() {
		x := n.placeholder("images", n.of(c.batch, c.size, c.size, 3))
		y := n.conv2d(x, n.variable("weights", c.patch, c.patch, 3, c.hidden), c.patch, valid)
		image = n.reshape(n.bias(y, n.variable("biases", c.hidden)), c.batch*patches, c.hidden)
	})
	image = c.tower(n, "images", image, 0, c.images, patches)
	n.within("words", c.images+1, func() {
		ids := n.placeholder("ids", ints(c.batch, c.tokens))
		caption = n.embed(n.variable("table", c.vocab, c.hidden/2), n.reshape(ids, c.batch*c.tokens))
	})
	caption = c.tower(n, "captions", caption, c.images, c.captions, c.tokens)
	n.within("pairs", c.depth(), func() {
		logits := n.binary("Mul", n.batchMatmul(n.expand(image, 0), n.expand(caption, 0), true), n.scalar())
		logits = n.reshape(logits, c.batch, c.batch)
		labels := n.placeholder("labels", ints(c.batch))
		n.binary("Add", n.mean(n.crossEntropy(logits, labels)), n.mean(n.crossEntropy(n.transpose(logits, 1, 0), labels)))
	})
}

// tower is a stack of layers behind first over x, [B*S,d], and the mean of its outputs in
// the joint width, [B,joint].
func (c *clip) tower(n *net, name string, x tensor, first, layers int, tokens int64) tensor {
	d := n.dim(x, 1)
	n.within(name, first+1, func() {
		for l := range layers {
			n.inLayer(first+l+1, func() {
				x = n.residual(x, func(y tensor) tensor {
					return n.selfAttention(y, selfAttention{batch: c.batch, tokens: tokens, heads: c.heads, scores: c.scores})
				})
				x = n.residual(x, func(y tensor) tensor { return n.dense(n.unary("Gelu", n.dense(y, 4*d)), d) })
			})
		}
		n.within("projection", first+layers, func() {
			mean := n.reduce("Mean", n.reshape(n.norm(x), c.batch, tokens, d), false, 1)
			x = n.matmul(mean, n.variable("projection", d, c.joint))
		})
	})
	return x
}
