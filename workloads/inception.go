package workloads

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/graph/train"
)

// InceptionConfig describes Inception-v3 (Szegedy et al., Rethinking the
// Inception Architecture for Computer Vision) as TensorFlow's research models
// write it.
type InceptionConfig struct {
	Batch   int
	Size    int // height and width of the images
	Classes int
	// Auxiliary adds the second classifier that training uses.
	Auxiliary bool
	// FusedNorm uses one kernel for batch normalisation, as later versions do.
	FusedNorm bool
	// Averages keeps moving averages of all variables.
	Averages bool
	Train    train.Config
}

// DefaultInception returns the papers' setting for a batch size.
func DefaultInception(batch int) InceptionConfig {
	return InceptionConfig{Batch: batch, Size: 299, Classes: 1001, Auxiliary: true, Averages: true,
		Train: train.Config{Optimizer: train.Adam, GateGradients: true, InitOps: true}}
}

// Validate reports every fault of c.
func (c InceptionConfig) Validate() error {
	return errors.Join(between("batch", c.Batch, 1, 1<<16), between("size", c.Size, 107, 4096), between("classes", c.Classes, 2, 1<<20), c.Train.Validate())
}

// Inception returns the training graph of c. The stem makes two layers, each
// module of parallel branches one, the classifier the last; the auxiliary
// classifier belongs to the module it reads.
func Inception(c InceptionConfig) (*graph.Graph, error) {
	return c.generate(fmt.Sprintf("inception%d", c.Batch))
}

// Build returns Inception(c).
func (c InceptionConfig) Build() (*graph.Graph, error) { return Inception(c) }

func (c InceptionConfig) generate(name string) (*graph.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("inception: %w", err)
	}
	return c.network(name).training(c.Train)
}

func inceptionSpecs() []Spec {
	spec := func(name string, batch, ops int) Spec {
		return Spec{Name: name, Family: "inception", Layers: inceptionLayers, GPUs: 2, PublishedOps: ops,
			Note:   "with the auxiliary classifier, batch normalisation of single ops and the variables' initializers: 20,274 ops without these, which run before the step",
			params: DefaultInception(batch)}
	}
	return []Spec{spec("inception", 32, 0), spec("inception64", 64, 24713)}
}

const inceptionLayers = 14

// conv is a convolution with batch normalisation and a ReLU.
func (n *cnn) conv(x tensor, out, ky, kx, stride int64, p padding) (y tensor) {
	n.within(fmt.Sprintf("conv_%dx%d", ky, kx), int(n.layer), func() {
		w := n.weights("weights", ky, kx, n.dim(x, 3), out)
		y = n.unary("Relu", n.batchNorm(n.conv2d(x, w, stride, p)))
	})
	return y
}

// branches joins the outputs of branches along the channels.
func (n *cnn) branches(ys ...tensor) tensor { return n.concat(3, ys...) }

func (c InceptionConfig) network(name string) *cnn {
	n := &cnn{net: newNet(name, graph.F32), norm: normConfig{fused: c.FusedNorm, averages: c.Averages, decay: true}}
	n.dynamic = !c.Train.StaticShapes
	batch, size := int64(c.Batch), int64(c.Size)
	x := n.placeholder("images", n.of(batch, size, size, 3))
	labels := n.placeholder("labels", ints(batch))
	n.b.At(n.b.TensorAt(labels).Producer).Layer = inceptionLayers
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
	if c.Auxiliary {
		n.within("auxiliary", layer, func() { losses = append(losses, c.auxiliary(n, x, labels)) })
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
	return n
}

// logits is a convolution to one value per class, [B,V].
func (c InceptionConfig) logits(n *cnn, x tensor, k int64) tensor {
	w := n.weights("weights", k, k, n.dim(x, 3), int64(c.Classes))
	b := n.averaged(n.variable("biases", int64(c.Classes)))
	x = n.bias(n.conv2d(x, w, 1, valid), b)
	return n.op("Squeeze", n.of(int64(c.Batch), int64(c.Classes)), x)
}

// auxiliary is the classifier beside the last module of 17x17.
func (c InceptionConfig) auxiliary(n *cnn, x, labels tensor) tensor {
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
