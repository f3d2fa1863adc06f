package nn

import "fmt"

// Concat returns the rows of xs, each [N,Di], beside each other: [N,sum of Di].
func (g *Graph) Concat(xs ...*Node) *Node {
	n, d := xs[0].Shape()[0], 0
	for _, x := range xs {
		if x.Shape()[0] != n {
			panic(fmt.Sprintf("nn: concatenation of %v and %v", xs[0].Shape(), x.Shape()))
		}
		d += x.Shape()[1]
	}
	return g.Apply("concat", concat{}, n, d, xs...)
}

type concat struct{}

func (concat) Forward(c *Context, in []Mat, out Mat) {
	c.Rows(out.N, func(_, _ int, _ bool, lo, hi int) {
		for r := lo; r < hi; r++ {
			at := out.Row(r)
			for _, x := range in {
				at = at[copy(at, x.Row(r)):]
			}
		}
	})
}

func (concat) Backward(c *Context, in []Mat, _, grad Mat, din []Mat) {
	c.Rows(grad.N, func(_, _ int, _ bool, lo, hi int) {
		for r := lo; r < hi; r++ {
			at := grad.Row(r)
			for i, x := range in {
				if din[i].V != nil {
					copy(din[i].Row(r), at)
				}
				at = at[x.D:]
			}
		}
	})
}

// Reshape returns the elements of x, row after row, as a matrix [n,d].
func (g *Graph) Reshape(x *Node, n, d int) *Node {
	if s := x.Shape(); s[0]*s[1] != n*d {
		panic(fmt.Sprintf("nn: %v reshaped to [%d,%d]", s, n, d))
	}
	return g.Apply("reshape", reshape{}, n, d, x)
}

type reshape struct{}

func (reshape) Forward(_ *Context, in []Mat, out Mat)                { copy(out.V, in[0].V) }
func (reshape) Backward(_ *Context, _ []Mat, _, grad Mat, din []Mat) { copy(din[0].V, grad.V) }
