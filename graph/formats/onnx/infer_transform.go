package onnx

import (
	"math"

	"placer/graph"
)

// transformRules are Fourier transforms and what is made for them.
var transformRules = map[string]rule{
	"DFT": {"DFT", dft}, "STFT": {"STFT", stft}, "MelWeightMatrix": {"MelWeightMatrix", melWeights},
}

// fourier adds the cost of count transforms of n complex numbers, 5 n log2 n operations
// each, as fast ones are counted whatever n is; of real numbers it is half.
func (c *call) fourier(count float64, n int64, real bool) {
	f := 5 * count * float64(n) * math.Log2(float64(max(n, 1)))
	if real {
		f /= 2
	}
	c.flops = max(c.flops, 0) + flops(f)
}

// dft: data whose last dimension is 1 or 2, for real or complex numbers, and the length to
// which the transformed axis is cut or filled. The axis is input 2, before operator set 20
// an attribute. Onesided gives the half that is not redundant; of an inverse one it reads
// that and gives real numbers.
func dft(c *call) {
	s := c.ranked(0, 2, maxRank)
	at := int64(-2)
	if c.opset() < 20 {
		at = c.node.int("axis", 1)
	} else if c.has(2) {
		at = c.scalar(2)
	}
	axis := c.axis(at, len(s))
	if axis == len(s)-1 || s[len(s)-1] != 1 && s[len(s)-1] != 2 {
		c.fail("axis %d of %v", at, s)
	}
	half, inverse := c.node.int("onesided", 0) != 0, c.node.int("inverse", 0) != 0
	n := s[axis]
	if half && inverse {
		n = c.mul(2, max(n-1, 0))
	}
	if c.has(1) {
		n = c.scalar(1)
	}
	out := with(with(s, len(s)-1, 2), axis, n)
	switch {
	case half && inverse:
		out[len(out)-1] = 1
	case half:
		out[axis] = n/2 + 1
	}
	c.set(0, c.elem(0), out)
	c.fourier(elementsOf(out)/float64(max(out[axis], 1)*out[len(out)-1]), n, half || s[len(s)-1] == 1)
}

// stft: the transforms of frames of a signal [B,L,1 or 2] every so many samples; a window
// or input 3 says how long a frame is. To [B,frames,bins,2].
func stft(c *call) {
	s, step := c.ranked(0, 2, 3), c.scalar(1)
	var n int64
	switch {
	case c.has(3):
		n = c.scalar(3)
	case c.has(2):
		n = c.ranked(2, 1, 1)[0]
	default:
		c.fail("has neither a window nor the length of a frame")
	}
	if step < 1 || n < 1 || n > s[1] {
		c.fail("frames of %d every %d of a signal %v", n, step, s)
	}
	real, bins := len(s) == 2 || s[2] == 1, n
	if c.node.int("onesided", 1) != 0 {
		bins = n/2 + 1
	}
	frames := (s[1]-n)/step + 1
	c.set(0, c.elem(0), graph.Shape{s[0], frames, bins, 2})
	count := float64(s[0]) * float64(frames)
	if c.has(2) {
		c.flops = flops(count * float64(n)) // the window
	}
	c.fourier(count, n, real)
}

// melWeights: numbers of bins, of samples in a transform, and three that the shape does
// not depend on.
func melWeights(c *call) {
	c.set(0, elem(c.node.int("output_datatype", int64(elemFloat))), graph.Shape{c.scalar(1)/2 + 1, c.scalar(0)})
}
