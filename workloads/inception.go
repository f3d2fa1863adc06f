package workloads

import (
	"fmt"

	"placer/graph/train"
)

// inception is Inception-v3 (Szegedy et al., Rethinking the Inception Architecture
// for Computer Vision) as TensorFlow's research models write it. The stem makes two
// layers, each module of parallel branches one, the classifier the last; the
// auxiliary classifier belongs to the module it reads.
type inception struct {
	size      int64 // height and width of the images
	classes   int64
	auxiliary bool // the second classifier that training uses
	fusedNorm bool // one kernel for batch normalisation, as later versions have
	averages  bool // moving averages of all variables
	common
}

// newInception returns the papers' setting for a batch size.
func newInception(batch int64) *inception {
	return &inception{size: 299, classes: 1001, auxiliary: true, averages: true,
		common: common{batch: batch, train: train.Config{Optimizer: train.Adam, GateGradients: true, InitOps: true}}}
}

func (c *inception) depth() int { return 14 }

func (c *inception) settings() []setting {
	return []setting{
		{"batch", &c.batch, 1, 1 << 16}, {"size", &c.size, 107, 4096}, {"classes", &c.classes, 2, 1 << 20}, {name: "auxiliary", to: &c.auxiliary},
		{name: "fused_norm", to: &c.fusedNorm}, {name: "averages", to: &c.averages}, c.optimizer(),
	}
}

// conv is a convolution with batch normalisation and a ReLU.
func (n *cnn) conv(x tensor, out, ky, kx, stride int64, p padding) (y tensor) {
	n.sub(fmt.Sprintf("conv_%dx%d", ky, kx), func() {
		w := n.weights("weights", ky, kx, n.dim(x, 3), out)
		y = n.unary("Relu", n.batchNorm(n.conv2d(x, w, stride, p)))
	})
	return y
}

// branches joins the outputs of branches along the channels.
func (n *cnn) branches(ys ...tensor) tensor { return n.concat(3, ys...) }

func (c *inception) forward(base *net) {
	n := &cnn{net: base, norm: normConfig{fused: c.fusedNorm, averages: c.averages, decay: true}}
	x := n.placeholder("images", n.of(c.batch, c.size, c.size, 3))
	labels := n.lastPlaceholder("labels", c.depth(), c.batch)
	layer := 0
	module := func(name string, f func()) {
		layer++
		n.within(name, layer, f)
	}
	module("stem_1", func() {
		x = n.conv(x, 32, 3, 3, 2, valid)
		x = n.conv(x, 32, 3, 3, 1, valid)
		x = n.conv(x, 64, 3, 3, 1, same)
		x = n.pool("MaxPool", x, 3, 2, valid)
	})
	module("stem_2", func() {
		x = n.conv(x, 80, 1, 1, 1, valid)
		x = n.conv(x, 192, 3, 3, 1, valid)
		x = n.pool("MaxPool", x, 3, 2, valid)
	})
	for k, pooled := range []int64{32, 64, 64} {
		module(fmt.Sprintf("mixed_5%c", 'b'+k), func() { x = n.mixed5(x, pooled) })
	}
	module("mixed_6a", func() { x = n.mixed6a(x) })
	for k, width := range []int64{128, 160, 160, 192} {
		module(fmt.Sprintf("mixed_6%c", 'b'+k), func() { x = n.mixed6(x, width) })
	}
	var losses []tensor
	if c.auxiliary {
		n.within("auxiliary", layer, func() { losses = append(losses, c.auxiliaryLoss(n, x, labels)) })
	}
	module("mixed_7a", func() { x = n.mixed7a(x) })
	for k := range 2 {
		module(fmt.Sprintf("mixed_7%c", 'b'+k), func() { x = n.mixed7(x) })
	}
	module("logits", func() {
		x = n.pool("AvgPool", x, n.dim(x, 1), 1, valid)
		x = n.dropout(x)
		losses = append(losses, n.classify(c.logits(n, x, 1), labels))
		n.addN(append(losses, n.losses...)...)
	})
}

// logits is a convolution to one value per class, [B,V].
func (c *inception) logits(n *cnn, x tensor, k int64) tensor {
	w := n.weights("weights", k, k, n.dim(x, 3), c.classes)
	b := n.averaged(n.variable("biases", c.classes))
	x = n.bias(n.conv2d(x, w, 1, valid), b)
	return n.op("Squeeze", n.of(c.batch, c.classes), x)
}

// auxiliaryLoss is that of the classifier beside the last module of 17x17.
func (c *inception) auxiliaryLoss(n *cnn, x, labels tensor) tensor {
	x = n.pool("AvgPool", x, 5, 3, valid)
	x = n.conv(x, 128, 1, 1, 1, same)
	k := n.dim(x, 1) // 5 for images of 299
	x = n.conv(x, 768, k, k, 1, valid)
	return n.classify(c.logits(n, x, 1), labels)
}

func (n *cnn) mixed5(x tensor, pooled int64) tensor {
	a := n.conv(x, 64, 1, 1, 1, same)
	b := n.conv(n.conv(x, 48, 1, 1, 1, same), 64, 5, 5, 1, same)
	c := n.conv(n.conv(n.conv(x, 64, 1, 1, 1, same), 96, 3, 3, 1, same), 96, 3, 3, 1, same)
	d := n.conv(n.pool("AvgPool", x, 3, 1, same), pooled, 1, 1, 1, same)
	return n.branches(a, b, c, d)
}

func (n *cnn) mixed6a(x tensor) tensor {
	a := n.conv(x, 384, 3, 3, 2, valid)
	b := n.conv(n.conv(n.conv(x, 64, 1, 1, 1, same), 96, 3, 3, 1, same), 96, 3, 3, 2, valid)
	return n.branches(a, b, n.pool("MaxPool", x, 3, 2, valid))
}

func (n *cnn) mixed6(x tensor, w int64) tensor {
	a := n.conv(x, 192, 1, 1, 1, same)
	b := n.conv(n.conv(n.conv(x, w, 1, 1, 1, same), w, 1, 7, 1, same), 192, 7, 1, 1, same)
	c := n.conv(n.conv(x, w, 1, 1, 1, same), w, 7, 1, 1, same)
	c = n.conv(n.conv(n.conv(c, w, 1, 7, 1, same), w, 7, 1, 1, same), 192, 1, 7, 1, same)
	d := n.conv(n.pool("AvgPool", x, 3, 1, same), 192, 1, 1, 1, same)
	return n.branches(a, b, c, d)
}

func (n *cnn) mixed7a(x tensor) tensor {
	a := n.conv(n.conv(x, 192, 1, 1, 1, same), 320, 3, 3, 2, valid)
	b := n.conv(n.conv(n.conv(x, 192, 1, 1, 1, same), 192, 1, 7, 1, same), 192, 7, 1, 1, same)
	b = n.conv(b, 192, 3, 3, 2, valid)
	return n.branches(a, b, n.pool("MaxPool", x, 3, 2, valid))
}

func (n *cnn) mixed7(x tensor) tensor {
	a := n.conv(x, 320, 1, 1, 1, same)
	b := n.conv(x, 384, 1, 1, 1, same)
	b = n.branches(n.conv(b, 384, 1, 3, 1, same), n.conv(b, 384, 3, 1, 1, same))
	c := n.conv(n.conv(x, 448, 1, 1, 1, same), 384, 3, 3, 1, same)
	c = n.branches(n.conv(c, 384, 1, 3, 1, same), n.conv(c, 384, 3, 1, 1, same))
	d := n.conv(n.pool("AvgPool", x, 3, 1, same), 192, 1, 1, 1, same)
	return n.branches(a, b, c, d)
}
