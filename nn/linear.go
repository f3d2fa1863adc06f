package nn

import (
	"fmt"

	"placer/nn/vec"
)

// Activation is what a Linear applies to its sum.
type Activation int

// The activations.
const (
	Identity Activation = iota
	Relu
	Sigmoid
)

// Linear returns activation(Σ xs[i] ws[i] + b), [N,D]: xs[i] [N,Di], ws[i]
// [Di,D], b [D]. Several inputs stand for one concatenated input.
func (g *Graph) Linear(a Activation, xs []*Node, ws []*Param, b *Param) *Node {
	if len(xs) == 0 || len(xs) != len(ws) {
		panic(fmt.Sprintf("nn: linear of %d inputs and %d weights", len(xs), len(ws)))
	}
	n, d := xs[0].Shape()[0], b.Shape[0]
	in := append([]*Node(nil), xs...)
	for i, w := range ws {
		if s := xs[i].Shape(); s[0] != n || s[1] != w.Shape[0] || w.Shape[1] != d {
			panic(fmt.Sprintf("nn: linear %s: input %v, weight %v, bias %v", w.Name, s, w.Shape, b.Shape))
		}
		in = append(in, g.Param(w))
	}
	return g.Apply("linear", &linear{activation: a, pairs: len(xs)}, n, d, append(in, g.Param(b))...)
}

// linear takes x1..xk, W1..Wk, b.
type linear struct {
	activation Activation
	pairs      int
}

func (l *linear) Forward(c *Context, in []Mat, out Mat) {
	k := l.pairs
	LinearForward(c, l.activation, in[:k], in[k:2*k], in[2*k].V, out)
}

func (l *linear) Backward(c *Context, in []Mat, out, grad Mat, din []Mat) {
	k := l.pairs
	LinearBackward(c, l.activation, in[:k], in[k:2*k], out, grad, din[:k], din[k:2*k], din[2*k].V)
}

// LinearForward writes out = activation(Σ xs[i] ws[i] + b).
func LinearForward(c *Context, a Activation, xs, ws []Mat, b []float32, out Mat) {
	d := out.D
	c.Rows(out.N, func(_, _ int, _ bool, lo, hi int) {
		for i, x := range xs {
			beta := float32(1)
			if i == 0 {
				beta = 0
			}
			c.Gemm(false, false, hi-lo, d, x.D, x.V[lo*x.D:hi*x.D], x.D, ws[i].V, d, beta, out.V[lo*d:hi*d], d)
		}
		for r := lo; r < hi; r++ {
			switch row := out.Row(r); a {
			case Identity:
				vec.Add(row, row, b)
			case Relu:
				vec.ReluBias(row, b)
			case Sigmoid:
				vec.SigmoidBias(row, b)
			}
		}
	})
}

// Scratch keys of the kernels in this package; other packages start at
// FirstFreeKey. Keys are separate for Shared, OfWorker and OfPiece.
const (
	keyGrad = iota
	keyBias
	keyWeight0
	keyWeight1
	keyWeight2
	FirstFreeKey
)

// LinearBackward writes the gradients of LinearForward: dxs[i] and dws[i] where
// their V is not nil, and db. y is LinearForward's output and grad the gradient
// with respect to it.
func LinearBackward(c *Context, a Activation, xs, ws []Mat, y, grad Mat, dxs, dws []Mat, db []float32) {
	d := y.D
	if len(xs) > 3 {
		panic(fmt.Sprintf("nn: linear of %d inputs, at most 3 are supported", len(xs)))
	}
	c.Rows(y.N, func(worker, piece int, first bool, lo, hi int) {
		z := grad.V[lo*d : hi*d] // the gradient before the activation
		switch a {
		case Relu:
			t := c.OfWorker(worker, keyGrad, len(z))
			vec.ReluBack(t, y.V[lo*d:hi*d], z)
			z = t
		case Sigmoid:
			t := c.OfWorker(worker, keyGrad, len(z))
			vec.SigmoidBack(t, y.V[lo*d:hi*d], z)
			z = t
		}
		sum := c.OfPiece(piece, keyBias, d)
		if first {
			clear(sum)
		}
		for r := range hi - lo {
			vec.Add(sum, sum, z[r*d:r*d+d])
		}
		beta := float32(1)
		if first {
			beta = 0
		}
		for i, x := range xs {
			if dxs[i].V != nil {
				c.Gemm(false, true, hi-lo, x.D, d, z, d, ws[i].V, d, 0, dxs[i].V[lo*x.D:hi*x.D], x.D)
			}
			if dws[i].V != nil {
				c.Gemm(true, false, x.D, d, hi-lo, x.V[lo*x.D:hi*x.D], x.D, z, d, beta, c.OfPiece(piece, keyWeight0+i, x.D*d), d)
			}
		}
	})
	c.SumPieces(y.N, keyBias, db)
	for i := range xs {
		if dws[i].V != nil {
			c.SumPieces(y.N, keyWeight0+i, dws[i].V)
		}
	}
}

// SumPieces writes into dst the sum of the partial sums that Rows over n rows
// left in scratch buffer key of each piece, in the order of the pieces.
func (c *Context) SumPieces(n, key int, dst []float32) {
	clear(dst)
	for p := range pieceCount(n) {
		vec.Add(dst, dst, c.OfPiece(p, key, len(dst)))
	}
}
