package workloads

import (
	"testing"

	"placer/graph"
	"placer/graph/train"
	"placer/internal/doctest"
	"placer/internal/faults"
)

// mixer is MLP-Mixer (Tolstikhin et al., arXiv:2105.01601): products over the patches of an
// image, then over its channels, in turn. Layer l of the model is layer l; the patches belong
// to the first, the classifier to the last.
type mixer struct {
	layers  int
	hidden  int64 // channels of a patch
	tokens  int64 // width of the product over patches
	ffn     int64 // width of the product over channels
	size    int64 // height and width of the images
	patch   int64 // divides size
	classes int64
	common
}

// newMixer returns the sizes of Mixer-B/16.
func newMixer() *mixer {
	return &mixer{layers: 12, hidden: 768, tokens: 384, ffn: 3072, size: 224, patch: 16, classes: 1000,
		common: common{batch: 64, dtype: graph.BF16, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}}
}

func (c *mixer) depth() int { return c.layers }

func (c *mixer) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 1024}, {"hidden", &c.hidden, 1, 1 << 18}, {"tokens", &c.tokens, 1, 1 << 18}, {"ffn", &c.ffn, 1, 1 << 20}, {"batch", &c.batch, 1, 1 << 16},
		{"size", &c.size, 1, 1 << 14}, {"patch", &c.patch, 1, 1 << 12}, {"classes", &c.classes, 2, 1 << 20}, {name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(),
	}
}

func (c *mixer) faults() (errs faults.List) {
	errs.If(c.patch > 0 && c.size%c.patch != 0, "size is %d, want a multiple of the patch, %d", c.size, c.patch)
	return errs
}

func (c *mixer) forward(n *net) {
	batch, d := c.batch, c.hidden
	patches := (c.size / c.patch) * (c.size / c.patch)
	var x tensor // [B*S,d]
	n.within("patches", 1, func() {
		images := n.placeholder("images", n.of(batch, c.size, c.size, 3))
		y := n.conv2d(images, n.variable("weights", c.patch, c.patch, 3, d), c.patch, valid)
		x = n.reshape(n.bias(y, n.variable("biases", d)), batch*patches, d)
	})
	for l := range c.layers {
		n.inLayer(l+1, func() {
			n.within("patches", l+1, func() {
				y := n.transpose(n.reshape(n.norm(x), batch, patches, d), 0, 2, 1)
				y = c.mix(n, n.reshape(y, batch*d, patches), c.tokens)
				y = n.transpose(n.reshape(y, batch, d, patches), 0, 2, 1)
				x = n.binary("Add", x, n.reshape(y, batch*patches, d))
			})
			n.within("channels", l+1, func() { x = n.binary("Add", x, c.mix(n, n.norm(x), c.ffn)) })
		})
	}
	n.within("classifier", c.layers, func() {
		y := n.reduce("Mean", n.reshape(n.norm(x), batch, patches, d), false, 1)
		logits := n.cast(n.dense(y, c.classes), graph.F32)
		n.mean(n.crossEntropy(logits, n.placeholder("labels", ints(batch))))
	})
}

// mix is two products with a nonlinearity between them, back to the width of x.
func (c *mixer) mix(n *net, x tensor, width int64) tensor {
	return n.dense(n.unary("Gelu", n.dense(x, width)), n.dim(x, 1))
}

// TestGuide: the family that docs/adding-a-workload.md adds has the parameters of Mixer-B/16
// and the products that one counts by hand.
func TestGuide(t *testing.T) {
	doctest.Shows(t, "../docs/adding-a-workload.md", "guide_test.go", "// mixer is MLP-Mixer")
	g, err := build(newMixer(), "mixer")
	if err != nil {
		t.Fatal(err)
	}
	checkAnnotations(t, g, 12)
	forward, backward := products(g)
	if got, want := (figures{g.Params(), forward, backward}), mixerByHand(); got != want {
		t.Errorf("parameters and product FLOPs, forward and backward, %+v, by hand %+v", got, want)
	}
	if err := validate(&mixer{layers: 1, hidden: 1, tokens: 1, ffn: 1, size: 5, patch: 2, classes: 2, common: newMixer().common}); err == nil {
		t.Error("patches that do not divide the image are taken")
	}
	if _, err := build(&mixer{}, "zeros"); err == nil {
		t.Error("zeros give a graph")
	}
}

// mixerByHand: 59,880,472 is the count of the published Mixer-B/16. The gradient of the images
// is of no use and not computed.
func mixerByHand() figures {
	const b, d, s, tokens, ffn, classes = 64, 768, 196, 384, 3072, 1000
	patches := int64(2 * b * s * 16 * 16 * 3 * d)
	layer := int64(2*2*b*d*s*tokens + 2*2*b*s*d*ffn)
	rest := 12*layer + 2*b*d*classes
	return figures{59880472, patches + rest, patches + 2*rest}
}
