package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// unet is a U-Net (Ronneberger et al., arXiv:1505.04597) of residual blocks, and with
// diffusion the one that removes noise (Ho et al., arXiv:2006.11239): every block of the
// way down hands its output to its counterpart on the way up. Level i of the way down is
// layer i+1, the same level of the way up layer 2 levels - i; the input belongs to the
// first layer, the middle to the deepest level's, the output to the last.
type unet struct {
	levels    int   // resolutions: each halves height and width and doubles the channels
	blocks    int   // residual blocks of a level, on either side
	width     int64 // channels of the first level
	size      int64 // height and width of the images, a multiple of 2^(levels-1)
	attention int   // levels, from the deepest on, whose blocks attend to all positions
	heads     int64 // divides width
	diffusion bool  // every block reads an embedding of the time of noise
	common
}

// newUNet returns a small U-Net for images of 128x128.
func newUNet() *unet {
	return &unet{levels: 4, blocks: 2, width: 64, size: 128, heads: 4, common: common{batch: 16, train: train.Config{Optimizer: train.Adam, StaticShapes: true}}}
}

// newDiffusion returns the sizes that Ho et al. use for CIFAR-10.
func newDiffusion() *unet {
	c := newUNet()
	c.width, c.size, c.attention, c.diffusion, c.batch = 128, 32, 2, true, 128
	return c
}

func (c *unet) depth() int { return 2 * c.levels }

func (c *unet) settings() []setting {
	return []setting{
		{"levels", &c.levels, 1, 10}, {"blocks", &c.blocks, 1, 256}, {"width", &c.width, 1, 1 << 12}, {"size", &c.size, 1, 4096}, {"attention", &c.attention, 0, 10},
		{"heads", &c.heads, 1, 1 << 10}, {"batch", &c.batch, 1, 1 << 16}, {name: "diffusion", to: &c.diffusion}, {name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(),
	}
}

func (c *unet) faults() (errs faults.List) {
	errs.If(c.levels > 0 && c.levels < 20 && c.size%(1<<(c.levels-1)) != 0, "size is %d, want a multiple of %d for %d levels", c.size, int64(1)<<max(0, c.levels-1), c.levels)
	errs.If(c.heads > 0 && c.width%c.heads != 0, "width is %d, want a multiple of the %d heads", c.width, c.heads)
	return errs
}

// channels returns those of a level.
func (c *unet) channels(level int) int64 { return c.width << level }

func (c *unet) forward(n *net) {
	var x, time tensor
	n.within("input", 1, func() {
		x = n.plainConv(n.placeholder("images", n.of(c.batch, c.size, c.size, 3)), c.width, 3, 1)
		if c.diffusion {
			t := n.placeholder("time", n.of(c.batch, c.width))
			time = n.dense(n.unary("Swish", n.dense(t, 4*c.width)), 4*c.width)
		}
	})
	skips := make([][]tensor, c.levels)
	for i := range c.levels {
		n.inLayer(i+1, func() {
			if i > 0 {
				x = n.plainConv(x, c.channels(i), 3, 2)
			}
			for range c.blocks {
				x = c.block(n, x, time, i)
				skips[i] = append(skips[i], x)
			}
		})
	}
	n.within("middle", c.levels, func() { x = c.block(n, x, time, c.levels-1) })
	for i := c.levels - 1; i >= 0; i-- {
		n.inLayer(2*c.levels-i, func() {
			for k := c.blocks - 1; k >= 0; k-- {
				x = c.block(n, n.concat(3, x, skips[i][k]), time, i)
			}
			if i > 0 {
				x = n.plainConv(n.upsample(x), c.channels(i-1), 3, 1)
			}
		})
	}
	n.within("output", c.depth(), func() {
		y := n.plainConv(n.unary("Swish", n.channelNorm(x)), 3, 3, 1)
		n.mean(n.binary("SquaredDifference", y, n.placeholder("target", n.like(y))))
	})
}

// block is two convolutions beside an identity, or beside a projection where the
// channels change, and attention where the level has it.
func (c *unet) block(n *net, x, time tensor, level int) tensor {
	out := c.channels(level)
	n.sub("block", func() {
		y := n.plainConv(n.unary("Swish", n.channelNorm(x)), out, 3, 1)
		if c.diffusion {
			shift := n.dense(n.unary("Swish", time), out)
			y = n.binary("Add", y, n.reshape(shift, c.batch, 1, 1, out))
		}
		y = n.plainConv(n.unary("Swish", n.channelNorm(y)), out, 3, 1)
		if n.dim(x, 3) != out {
			x = n.plainConv(x, out, 1, 1)
		}
		x = n.binary("Add", x, y)
	})
	if level >= c.levels-c.attention {
		n.sub("attention", func() {
			s := n.shape(x)
			positions := s[1] * s[2]
			y := n.norm(n.reshape(x, c.batch*positions, out))
			y = n.selfAttention(y, selfAttention{batch: c.batch, tokens: positions, heads: c.heads, scores: Products})
			x = n.binary("Add", x, n.reshape(y, s...))
		})
	}
	return x
}

// plainConv is a convolution of kxk windows with a bias, x of [B,Y,X,C].
func (n *net) plainConv(x tensor, out, k, stride int64) tensor {
	w := n.variable("weights", k, k, n.dim(x, 3), out)
	return n.bias(n.conv2d(x, w, stride, same), n.variable("biases", out))
}

// channelNorm is layer normalisation over the channels of x, [B,Y,X,C].
func (n *net) channelNorm(x tensor) tensor {
	s := n.shape(x)
	return n.reshape(n.norm(n.reshape(x, s[0]*s[1]*s[2], s[3])), s...)
}

// upsample doubles height and width of x, [B,Y,X,C].
func (n *net) upsample(x tensor) tensor {
	s := n.shape(x)
	return n.op("Resize", n.of(s[0], 2*s[1], 2*s[2], s[3]), x, n.vector(2))
}
