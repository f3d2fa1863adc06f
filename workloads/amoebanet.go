package workloads

import (
	"fmt"

	"placer/graph/train"
	"placer/internal/faults"
)

// amoebaNet is AmoebaNet-D (Real et al., Regularized Evolution for Image Classifier
// Architecture Search): a stem, then three groups of normal cells with a reduction
// cell between them. Cells combine pairs of hidden states by two operations each.
// Every cell is a layer, the first convolution belongs to the first, the classifier
// to the last.
type amoebaNet struct {
	cells     int   // normal cells, a multiple of 3
	filters   int64 // channels of a hidden state in the first group, a multiple of 16
	size      int64 // height and width of the images
	classes   int64
	fusedNorm bool // one kernel for batch normalisation
	averages  bool // moving averages of all variables
	decay     bool // a penalty on the squares of the weights
	common
}

// newAmoebaNet returns the papers' setting.
func newAmoebaNet() *amoebaNet {
	return &amoebaNet{cells: 12, filters: 128, size: 224, classes: 1001, fusedNorm: true,
		common: common{batch: 64, train: train.Config{Optimizer: train.Momentum, StaticShapes: true, GateGradients: true}}}
}

func (c *amoebaNet) depth() int { return c.cells + 4 }

func (c *amoebaNet) settings() []setting {
	return []setting{
		{"cells", &c.cells, 3, 300}, {"filters", &c.filters, 16, 1 << 14}, {"batch", &c.batch, 1, 1 << 16}, {"size", &c.size, 32, 4096},
		{"classes", &c.classes, 2, 1 << 20}, {name: "fused_norm", to: &c.fusedNorm}, {name: "averages", to: &c.averages}, {name: "decay", to: &c.decay}, c.optimizer(),
	}
}

func (c *amoebaNet) faults() (errs faults.List) {
	errs.If(c.cells%3 != 0, "cells is %d, want a multiple of 3", c.cells)
	errs.If(c.filters%16 != 0, "filters is %d, want a multiple of 16", c.filters)
	return errs
}

// pair is one operation of a cell on an earlier state: 0 is the cell's input, 1
// the one before it, 2 and on the sums of pairs. Two in a row are added up.
type pair struct {
	state int
	op    string
}

// The cells of AmoebaNet-D and the states that they join to their output.
var (
	normalCell = []pair{
		{1, "conv_1x1"}, {1, "max_pool_3x3"},
		{1, "none"}, {0, "conv_1x7_7x1"},
		{0, "conv_1x1"}, {0, "conv_1x7_7x1"},
		{2, "max_pool_3x3"}, {2, "none"},
		{1, "avg_pool_3x3"}, {5, "conv_1x1"},
	}
	normalOutput  = []int{0, 3, 4, 6}
	reductionCell = []pair{
		{0, "max_pool_2x2"}, {0, "max_pool_3x3"},
		{2, "none"}, {1, "conv_3x3"},
		{2, "conv_1x7_7x1"}, {2, "max_pool_3x3"},
		{3, "none"}, {1, "max_pool_2x2"},
		{2, "avg_pool_3x3"}, {3, "conv_1x1"},
	}
	reductionOutput = []int{4, 5, 6}
)

func (c *amoebaNet) forward(base *net) {
	n := &cnn{net: base, norm: normConfig{fused: c.fusedNorm, scale: true, averages: c.averages, decay: c.decay}}
	layer, last := 0, c.depth()
	images := n.placeholder("images", n.of(c.batch, c.size, c.size, 3))
	labels := n.lastPlaceholder("labels", last, c.batch)

	channels := c.filters / 4
	var x tensor
	n.within("stem", 1, func() {
		x = n.conv2d(images, n.weights("weights", 3, 3, 3, channels), 2, same)
		x = n.batchNorm(x)
	})
	before := x
	cell := func(name string, pairs []pair, output []int, stride int64) {
		layer++
		n.within(name, layer, func() { x, before = n.cell(x, before, channels, pairs, output, stride), x })
	}
	reduce := func(name string) {
		channels *= 2
		cell(name, reductionCell, reductionOutput, 2)
	}
	reduce("stem_reduction_1")
	reduce("stem_reduction_2")
	for group := range 3 {
		if group > 0 {
			reduce(fmt.Sprintf("reduction_%d", group))
		}
		for k := range c.cells / 3 {
			cell(fmt.Sprintf("cell_%d", group*c.cells/3+k), normalCell, normalOutput, 1)
		}
	}
	n.within("classifier", last, func() {
		x = n.reduce("Mean", n.unary("Relu", x), false, 1, 2)
		w, b := n.weights("weights", n.dim(x, 1), c.classes), n.averaged(n.variable("biases", c.classes))
		loss := n.classify(n.bias(n.matmul(x, w), b), labels)
		n.addN(append([]tensor{loss}, n.losses...)...)
	})
}

// cell applies pairs to x and to the output of the cell before, both brought to
// the given channels, and joins the states named in output.
func (n *cnn) cell(x, before tensor, channels int64, pairs []pair, output []int, stride int64) tensor {
	states := []tensor{n.squeezeTo(x, channels), n.fit(before, x, channels)}
	for k := 0; k < len(pairs); k += 2 {
		var y [2]tensor
		for side := range y {
			p := pairs[k+side]
			s := int64(1)
			if p.state < 2 {
				s = stride
			}
			n.sub(fmt.Sprintf("pair_%d_%s", k/2, p.op), func() { y[side] = n.operation(p.op, states[p.state], s) })
		}
		states = append(states, n.binary("Add", y[0], y[1]))
	}
	join := make([]tensor, len(output))
	for k, s := range output {
		join[k] = states[s]
	}
	return n.branches(join...)
}

// squeezeTo is the convolution that brings x to the given channels.
func (n *cnn) squeezeTo(x tensor, channels int64) tensor { return n.reluConv(x, channels, 1, 1, 1) }

// fit brings the output of the cell before to the size and channels of this
// cell's states: by two strided convolutions of half the channels each, the
// second one pixel further, when x is smaller.
func (n *cnn) fit(before, x tensor, channels int64) (y tensor) {
	if n.dim(before, 1) == n.dim(x, 1) {
		if n.dim(before, 3) == channels {
			return before
		}
		return n.squeezeTo(before, channels)
	}
	n.sub("factorized_reduction", func() {
		r := n.unary("Relu", before)
		s := n.shape(r)
		shifted := n.op("Pad", n.of(s[0], s[1]+1, s[2]+1, s[3]), r, n.vector(8))
		shifted = n.slice(shifted, s...)
		var halves [2]tensor
		for k, t := range []tensor{r, shifted} {
			halves[k] = n.conv2d(t, n.weights("weights", 1, 1, s[3], channels/2), 2, same)
		}
		y = n.batchNorm(n.branches(halves[:]...))
	})
	return y
}

// reluConv is a ReLU, a convolution and batch normalisation.
func (n *cnn) reluConv(x tensor, out, ky, kx, stride int64) (y tensor) {
	n.sub(fmt.Sprintf("conv_%dx%d", ky, kx), func() {
		w := n.weights("weights", ky, kx, n.dim(x, 3), out)
		y = n.batchNorm(n.conv2d(n.unary("Relu", x), w, stride, same))
	})
	return y
}

// operation applies an operation of a cell to x, [B,Y,X,C].
func (n *cnn) operation(op string, x tensor, stride int64) tensor {
	c := n.dim(x, 3)
	switch op {
	case "none":
		return x
	case "avg_pool_3x3":
		return n.pool("AvgPool", x, 3, stride, same)
	case "max_pool_3x3":
		return n.pool("MaxPool", x, 3, stride, same)
	case "max_pool_2x2":
		return n.pool("MaxPool", x, 2, stride, same)
	case "conv_1x1":
		return n.reluConv(x, c, 1, 1, stride)
	case "conv_3x3":
		x = n.reluConv(x, c/4, 1, 1, 1)
		x = n.reluConv(x, c/4, 3, 3, stride)
		return n.reluConv(x, c, 1, 1, 1)
	case "conv_1x7_7x1":
		x = n.reluConv(x, c/4, 1, 1, 1)
		x = n.reluConv(x, c/4, 1, 7, 1)
		x = n.reluConv(x, c/4, 7, 1, 1)
		return n.reluConv(x, c, 1, 1, 1)
	}
	panic("workloads: no operation " + op)
}
