package workloads

import (
	"placer/graph/train"
)

// waveNet is WaveNet (van den Oord et al., WaveNet: A Generative Model for Raw
// Audio): stacks of gated residual layers whose causal convolutions of width two are
// dilated by 1, 2, 4, ... within each stack, and a head on the sum of their skip
// connections. Each residual layer is a layer; the first convolution belongs to the
// first, the head to the last.
type waveNet struct {
	stacks         int
	layersPerStack int   // dilations 1 to 2^(layersPerStack-1)
	length         int64 // samples of each sequence
	residual       int64 // channels of the residual path and of each gate
	skip           int64 // channels of the skip connections
	levels         int64 // quantised sample values
	common
}

// newWaveNet returns the papers' setting for a number of stacks.
func newWaveNet(stacks int) *waveNet {
	return &waveNet{stacks: stacks, layersPerStack: 9, length: 2048, residual: 128, skip: 256, levels: 256,
		common: common{batch: 64, train: train.Config{Optimizer: train.Adam, StaticShapes: true}}}
}

func (c *waveNet) depth() int { return c.stacks * c.layersPerStack }

func (c *waveNet) settings() []setting {
	return []setting{
		{"stacks", &c.stacks, 1, 256}, {"layers_per_stack", &c.layersPerStack, 1, 16}, {"batch", &c.batch, 1, 1 << 16}, {"length", &c.length, 1, 1 << 20},
		{"residual", &c.residual, 1, 1 << 14}, {"skip", &c.skip, 1, 1 << 14}, {"levels", &c.levels, 2, 1 << 16}, c.optimizer(),
	}
}

func (c *waveNet) forward(n *net) {
	batch, length, r := c.batch, c.length, c.residual
	layers := c.depth()
	audio := n.placeholder("audio", ints(batch, length))
	var x, skip tensor
	n.within("input", 1, func() {
		x = n.op("OneHot", n.of(batch, length, c.levels), audio, n.axis(), n.scalar(), n.scalar())
		x = n.causal(x, n.variable("filter", 2, c.levels, r), 1)
	})
	for l := range layers {
		n.inLayer(l+1, func() {
			gates := n.split(n.causal(x, n.variable("dilated", 2, r, 2*r), 1<<(l%c.layersPerStack)), 2, 2)
			z := n.binary("Mul", n.unary("Tanh", gates[0]), n.unary("Sigmoid", gates[1]))
			s := n.conv1d(z, n.variable("skip", 1, r, c.skip))
			if l == 0 {
				skip = s
			} else {
				skip = n.binary("Add", skip, s)
			}
			if l+1 < layers { // nothing reads the last layer's residual path
				x = n.binary("Add", x, n.conv1d(z, n.variable("dense", 1, r, r)))
			}
		})
	}
	n.within("head", layers, func() {
		y := n.conv1d(n.unary("Relu", skip), n.variable("hidden", 1, c.skip, c.skip))
		y = n.conv1d(n.unary("Relu", y), n.variable("logits", 1, c.skip, c.levels))
		logits := n.reshape(y, batch*length, c.levels)
		// The target of each sample is the next one.
		next := n.op("Pad", ints(batch, length), n.slice(audio, batch, length-1), n.vector(4))
		loss := n.crossEntropy(logits, n.reshape(next, batch*length))
		n.sumAll("Mean", loss)
	})
}

// conv1d is tf.nn.conv1d without padding: x, [B,T,C], and w, [K,C,O], get a
// dimension of 1 for the two-dimensional kernel.
func (n *net) conv1d(x, w tensor) tensor {
	return n.squeeze(n.conv2d(n.expand(x, 1), n.expand(w, 0), 1, valid), 1)
}

// causal convolves x, [B,T,C], with w, [2,C,O], the taps dilation samples apart,
// after padding it in front: tf.nn.convolution, which folds time into the batch
// for dilations above one.
func (n *net) causal(x, w tensor, dilation int64) tensor {
	batch, length, channels := n.dim(x, 0), n.dim(x, 1), n.dim(x, 2)
	pad := dilation * (n.dim(w, 0) - 1)
	x = n.op("Pad", n.of(batch, length+pad, channels), x, n.vector(6))
	if dilation == 1 {
		return n.conv1d(x, w)
	}
	folded := (length + pad + dilation - 1) / dilation
	x = n.op("SpaceToBatchND", n.of(batch*dilation, folded, channels), x, n.vector(1), n.vector(2))
	y := n.conv1d(x, w)
	return n.op("BatchToSpaceND", n.of(batch, length, n.dim(w, 2)), y, n.vector(1), n.vector(2))
}
