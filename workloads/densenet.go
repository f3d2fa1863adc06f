package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// densenet is a network in which each layer of a stage reads the outputs of all layers
// before it (Huang et al., arXiv:1608.06993): three stages, between them a convolution
// that halves the channels and pooling that halves height and width. Layer l of the
// model is layer l; the stem belongs to the first, what lies between two stages to the
// layer behind it, the classifier to the last.
type densenet struct {
	layers  int   // of a stage
	growth  int64 // channels that a layer adds
	size    int64 // height and width of the images
	classes int64
	common
}

// newDenseNet returns a small network.
func newDenseNet() *densenet {
	return &densenet{layers: 6, growth: 32, size: 224, classes: 1000, common: common{batch: 32, train: train.Config{Optimizer: train.Momentum, StaticShapes: true}}}
}

func (c *densenet) depth() int { return stages * c.layers }

func (c *densenet) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 128}, {"growth", &c.growth, 1, 1 << 12}, {"size", &c.size, 16, 4096}, {"classes", &c.classes, 2, 1 << 20}, {"batch", &c.batch, 1, 1 << 16}, c.optimizer(),
	}
}

func (c *densenet) faults() faults.List { return nil }

func (c *densenet) forward(n *net) {
	var x tensor
	n.within("stem", 1, func() {
		x = n.plainConv(n.placeholder("images", n.of(c.batch, c.size, c.size, 3)), 2*c.growth, 7, 2)
		x = n.pool("MaxPool", n.unary("Relu", x), 3, 2, same)
	})
	for s := range stages {
		all := []tensor{x}
		for l := range c.layers {
			n.inLayer(s*c.layers+l+1, func() {
				if l == 0 && s > 0 {
					x = n.plainConv(n.unary("Relu", x), max(1, n.dim(x, 3)/2), 1, 1)
					x = n.pool("AvgPool", x, 2, 2, same)
					all[0] = x
				}
				if l > 0 {
					x = n.concat(3, all...)
				}
				y := n.plainConv(n.unary("Relu", x), 4*c.growth, 1, 1)
				all = append(all, n.plainConv(n.unary("Relu", y), c.growth, 3, 1))
				if l == c.layers-1 {
					x = n.concat(3, all...)
				}
			})
		}
	}
	n.within("classifier", c.depth(), func() {
		labels := n.placeholder("labels", ints(c.batch))
		n.mean(n.crossEntropy(n.dense(n.reduce("Mean", n.unary("Relu", x), false, 1, 2), c.classes), labels))
	})
}
