package nn

import (
	"fmt"
	"math"
	"slices"

	"placer/nn/vec"
)

// normEpsilon keeps the deviation of a constant row away from 0.
const normEpsilon = 1e-5

// LayerNorm returns gain (x - mean(x)) / deviation(x) + bias per row, where x is
// the sum of one or two inputs [N,D]: with two, a layer's input and output, it is
// a residual connection followed by layer normalisation. gain and bias are [D].
func (g *Graph) LayerNorm(gain, bias *Param, xs ...*Node) *Node {
	s := xs[0].Shape()
	for _, x := range xs {
		if !slices.Equal(x.Shape(), s) || gain.Shape[0] != s[1] || bias.Shape[0] != s[1] || len(xs) > 2 {
			panic(fmt.Sprintf("nn: layer norm %s of %v and %v", gain.Name, s, x.Shape()))
		}
	}
	in := append([]*Node(nil), xs...)
	return g.Apply("norm", &norm{}, s[0], s[1], append(in, g.Param(gain), g.Param(bias))...)
}

// norm takes a [, b], gain, bias.
type norm struct {
	mean, scale []float32 // per row: mean, 1/deviation
}

// row writes (x - mean) scale into dst.
func (k *norm) row(dst []float32, in []Mat, r int) {
	src := in[0].Row(r)
	if len(in) == 4 {
		vec.Add(dst, src, in[1].Row(r))
		src = dst
	}
	vec.Normalize(dst, src, k.mean[r], k.scale[r])
}

func (k *norm) Forward(c *Context, in []Mat, out Mat) {
	if k.mean == nil {
		k.mean, k.scale = make([]float32, out.N), make([]float32, out.N)
	}
	p := len(in) - 2
	gain, bias := in[p].V, in[p+1].V
	c.Rows(out.N, func(_, _ int, _ bool, lo, hi int) {
		for r := lo; r < hi; r++ {
			dst, src := out.Row(r), in[0].Row(r)
			if p == 2 {
				vec.Add(dst, src, in[1].Row(r))
				src = dst
			}
			d := float32(out.D)
			k.mean[r] = vec.Sum(src) / d
			k.scale[r] = 1 / float32(math.Sqrt(float64(vec.SumSquares(src, k.mean[r])/d)+normEpsilon))
			vec.Normalize(dst, src, k.mean[r], k.scale[r])
			vec.Mul(dst, dst, gain)
			vec.Add(dst, dst, bias)
		}
	})
}

// Backward computes, with h the normalised row and t = grad gain,
// dx = scale (t - mean(t) - h mean(t h)). The normalised row is computed again
// rather than kept.
func (k *norm) Backward(c *Context, in []Mat, out, grad Mat, din []Mat) {
	p, d := len(in)-2, out.D
	gain := in[p].V
	c.Rows(out.N, func(worker, piece int, first bool, lo, hi int) {
		t, h := c.OfWorker(worker, keyGrad, d), c.OfWorker(worker, keyBias, d)
		dGain, dBias := c.OfPiece(piece, keyWeight0, d), c.OfPiece(piece, keyBias, d)
		if first {
			clear(dGain)
			clear(dBias)
		}
		for r := lo; r < hi; r++ {
			k.row(h, in, r)
			g := grad.Row(r)
			vec.Add(dBias, dBias, g)
			vec.MulAdd(dGain, g, h)
			vec.Mul(t, g, gain)
			m1, m2 := vec.Sum(t)/float32(d), vec.Dot(t, h)/float32(d)
			for i := range p {
				if din[i].V == nil {
					continue
				}
				// Each input has its own buffer: sums of gradients are made in place.
				dx := din[i].Row(r)
				vec.Normalize(dx, t, m1, k.scale[r])
				vec.Axpy(dx, h, -m2*k.scale[r])
			}
		}
	})
	c.SumPieces(out.N, keyWeight0, din[p].V)
	c.SumPieces(out.N, keyBias, din[p+1].V)
}
