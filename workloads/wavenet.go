package workloads

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/graph/train"
)

// WaveNetConfig describes WaveNet (van den Oord et al., WaveNet: A Generative
// Model for Raw Audio): stacks of gated residual layers whose causal
// convolutions of width two are dilated by 1, 2, 4, ... within each stack, and
// a head on the sum of their skip connections.
type WaveNetConfig struct {
	Stacks         int
	LayersPerStack int // dilations 1 to 2^(LayersPerStack-1)
	Batch          int
	Length         int // samples of each sequence
	Residual       int // channels of the residual path and of each gate
	Skip           int // channels of the skip connections
	Levels         int // quantised sample values
	Train          train.Config
}

// DefaultWaveNet returns the papers' setting for a number of stacks.
func DefaultWaveNet(stacks int) WaveNetConfig {
	return WaveNetConfig{Stacks: stacks, LayersPerStack: 9, Batch: 64, Length: 2048, Residual: 128, Skip: 256, Levels: 256,
		Train: train.Config{Optimizer: train.Adam, StaticShapes: true}}
}

// Validate reports every fault of c.
func (c WaveNetConfig) Validate() error {
	return errors.Join(between("stacks", c.Stacks, 1, 256), between("layers_per_stack", c.LayersPerStack, 1, 16), between("batch", c.Batch, 1, 1<<16),
		between("length", c.Length, 1, 1<<20), between("residual", c.Residual, 1, 1<<14), between("skip", c.Skip, 1, 1<<14), between("levels", c.Levels, 2, 1<<16), c.Train.Validate())
}

// WaveNet returns the training graph of c. Each residual layer is a layer; the
// first convolution belongs to the first, the head to the last.
func WaveNet(c WaveNetConfig) (*graph.Graph, error) {
	return c.generate(fmt.Sprintf("wavenet%d", c.Stacks))
}

// Build returns WaveNet(c).
func (c WaveNetConfig) Build() (*graph.Graph, error) { return WaveNet(c) }

func (c WaveNetConfig) generate(name string) (*graph.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("wavenet: %w", err)
	}
	n := newNet(name, graph.F32)
	n.dynamic = !c.Train.StaticShapes
	c.forward(n)
	return n.training(c.Train)
}

func wavenetSpecs() (specs []Spec) {
	for k, stacks := range []int{2, 4, 5, 10} {
		specs = append(specs, Spec{Name: fmt.Sprintf("wavenet%d", stacks), Family: "wavenet", Layers: stacks * 9,
			GPUs: [...]int{2, 4, 0, 0}[k], PublishedOps: [...]int{0, 0, 4374, 8516}[k],
			Note:   "sequences of 2,048 samples, 128 residual and 256 skip channels",
			params: DefaultWaveNet(stacks)})
	}
	return specs
}

func (c WaveNetConfig) forward(n *net) {
	batch, length, r := int64(c.Batch), int64(c.Length), int64(c.Residual)
	layers := c.Stacks * c.LayersPerStack
	audio := n.placeholder("audio", ints(batch, length))
	var x, skip tensor
	n.within("input", 1, func() {
		x = n.op("OneHot", n.of(batch, length, int64(c.Levels)), audio, n.axis(), n.scalar(), n.scalar())
		x = n.causal(x, n.variable("filter", 2, int64(c.Levels), r), 1)
	})
	for l := range layers {
		n.within(layerName(l+1), l+1, func() {
			gates := n.split(n.causal(x, n.variable("dilated", 2, r, 2*r), 1<<(l%c.LayersPerStack)), 2, 2)
			z := n.binary("Mul", n.unary("Tanh", gates[0]), n.unary("Sigmoid", gates[1]))
			s := n.conv1d(z, n.variable("skip", 1, r, int64(c.Skip)))
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
		y := n.conv1d(n.unary("Relu", skip), n.variable("hidden", 1, int64(c.Skip), int64(c.Skip)))
		y = n.conv1d(n.unary("Relu", y), n.variable("logits", 1, int64(c.Skip), int64(c.Levels)))
		logits := n.reshape(y, batch*length, int64(c.Levels))
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
