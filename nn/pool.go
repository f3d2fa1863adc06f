package nn

import (
	"fmt"

	"placer/nn/vec"
)

// MeanRows returns the mean of the rows of each group of x [N,D], [groups,D].
// Group i is rows bounds[i] up to bounds[i+1]; bounds is read at each run. With
// stop, no gradient reaches x.
func (g *Graph) MeanRows(x *Node, groups int, bounds *[]int32, stop bool) *Node {
	return g.Apply("mean", &meanRows{bounds, stop}, groups, x.Shape()[1], x)
}

type meanRows struct {
	bounds *[]int32
	stop   bool
}

func (k *meanRows) Forward(c *Context, in []Mat, out Mat) {
	b, x := *k.bounds, in[0]
	if len(b) != out.N+1 || b[0] != 0 || int(b[out.N]) != x.N {
		panic(fmt.Sprintf("nn: bounds %v for the means of %s in %d groups", b, x, out.N))
	}
	c.Each(out.N, func(_, i int) {
		row := out.Row(i)
		clear(row)
		for r := int(b[i]); r < int(b[i+1]); r++ {
			vec.Add(row, row, x.Row(r))
		}
		vec.Scale(row, 1/float32(max(b[i+1]-b[i], 1)))
	})
}

func (k *meanRows) Backward(c *Context, _ []Mat, _, grad Mat, din []Mat) {
	dx, b := din[0], *k.bounds
	clear(dx.V)
	if k.stop {
		return
	}
	c.Each(grad.N, func(_, i int) {
		for r := int(b[i]); r < int(b[i+1]); r++ {
			vec.Axpy(dx.Row(r), grad.Row(i), 1/float32(b[i+1]-b[i]))
		}
	})
}
