package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// resnext is a residual network whose blocks are sums of parallel branches (Xie et al.,
// arXiv:1611.05431, figure 3a): three stages of blocks, each stage of half the height and
// width and twice the channels of the one before. Every block is a layer; the stem
// belongs to the first, the classifier to the last.
type resnext struct {
	blocks   int   // of a stage
	branches int   // of a block
	width    int64 // channels of a branch in the first stage
	size     int64 // height and width of the images
	classes  int64
	norm     bool // batch normalisation behind every convolution; otherwise biases
	common
}

// stages is the number of resolutions of resnext and densenet.
const stages = 3

// newResNeXt returns a small network of four branches.
func newResNeXt() *resnext {
	return &resnext{blocks: 2, branches: 4, width: 32, size: 224, classes: 1000, common: common{batch: 32, train: train.Config{Optimizer: train.Momentum, StaticShapes: true}}}
}

func (c *resnext) depth() int { return stages * c.blocks }

func (c *resnext) settings() []setting {
	return []setting{
		{"blocks", &c.blocks, 1, 128}, {"branches", &c.branches, 1, 128}, {"width", &c.width, 1, 1 << 12}, {"size", &c.size, 16, 4096}, {"classes", &c.classes, 2, 1 << 20},
		{"batch", &c.batch, 1, 1 << 16}, {name: "norm", to: &c.norm}, c.optimizer(),
	}
}

func (c *resnext) faults() faults.List {
	return faults.List{between("blocks * branches", int64(c.blocks)*int64(c.branches), 1, 1<<12)}
}

func (c *resnext) forward(base *net) {
	n := &cnn{net: base, norm: normConfig{fused: true, scale: true}}
	var x tensor
	n.within("stem", 1, func() {
		x = c.conv(n, n.placeholder("images", n.of(c.batch, c.size, c.size, 3)), 2*c.width, 7, 2)
		x = n.pool("MaxPool", x, 3, 2, same)
	})
	for s := range stages {
		for b := range c.blocks {
			stride := int64(1)
			if s > 0 && b == 0 {
				stride = 2
			}
			n.inLayer(s*c.blocks+b+1, func() { x = c.block(n, x, c.width<<s, stride) })
		}
	}
	n.within("classifier", c.depth(), func() {
		labels := n.placeholder("labels", ints(c.batch))
		n.mean(n.crossEntropy(n.dense(n.reduce("Mean", x, false, 1, 2), c.classes), labels))
	})
}

// block adds up branches of three convolutions and the block's input.
func (c *resnext) block(n *cnn, x tensor, width, stride int64) tensor {
	out := 4 * width
	ends := make([]tensor, c.branches)
	for k := range ends {
		n.sub("branch", func() {
			y := c.conv(n, c.conv(n, x, width, 1, 1), width, 3, stride)
			ends[k] = n.plainConv(y, out, 1, 1)
		})
	}
	if n.dim(x, 3) != out || stride > 1 {
		x = n.plainConv(x, out, 1, stride)
	}
	return n.unary("Relu", n.binary("Add", n.addN(ends...), x))
}

// conv is a convolution and a ReLU.
func (c *resnext) conv(n *cnn, x tensor, out, k, stride int64) tensor {
	if c.norm {
		return n.conv(x, out, k, k, stride, same)
	}
	return n.unary("Relu", n.plainConv(x, out, k, stride))
}
