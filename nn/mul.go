package nn

import (
	"fmt"

	"placer/nn/vec"
)

// Mul returns the element-wise product of a [Na,D] and b [Nb,D], [Nb,D]. Nb is a
// multiple of Na: row r of b meets row r mod Na of a, so that a can belong to
// all of several stacked copies.
func (g *Graph) Mul(a, b *Node) *Node {
	s, t := a.Shape(), b.Shape()
	if s[1] != t[1] || t[0]%s[0] != 0 {
		panic(fmt.Sprintf("nn: product of %v and %v", s, t))
	}
	return g.Apply("mul", mul{}, t[0], t[1], a, b)
}

type mul struct{}

func (mul) Forward(c *Context, in []Mat, out Mat) {
	c.Rows(out.N, func(_, _ int, _ bool, lo, hi int) {
		eachBlock(in[0].N, lo, hi, func(a0, a1, b0, b1 int) {
			vec.Mul(out.Rows(b0, b1).V, in[0].Rows(a0, a1).V, in[1].Rows(b0, b1).V)
		})
	})
}

func (mul) Backward(c *Context, in []Mat, _, grad Mat, din []Mat) {
	a, b := in[0], in[1]
	if din[1].V != nil {
		mul{}.Forward(c, []Mat{a, grad}, din[1])
	}
	if din[0].V == nil {
		return
	}
	c.Rows(a.N, func(_, _ int, _ bool, lo, hi int) {
		vec.Mul(din[0].Rows(lo, hi).V, grad.Rows(lo, hi).V, b.Rows(lo, hi).V)
		for o := a.N; o < b.N; o += a.N {
			vec.MulAdd(din[0].Rows(lo, hi).V, grad.Rows(o+lo, o+hi).V, b.Rows(o+lo, o+hi).V)
		}
	})
}

// eachBlock cuts rows [lo,hi) of a matrix that repeats one of n rows where the
// smaller matrix starts again, and calls f with the rows of both.
func eachBlock(n, lo, hi int, f func(a0, a1, b0, b1 int)) {
	for lo < hi {
		a := lo % n
		m := min(n-a, hi-lo)
		f(a, a+m, lo, lo+m)
		lo += m
	}
}
