package graphsage

import (
	"placer/nn"
	"placer/nn/vec"
)

// Aggregate adds hN [N,d], the element-wise maximum over each node's neighbours u
// of sigmoid(h(u) w + b), to g. h is [N,e], w [e,d], b [d]. The lists are read at
// each run.
func Aggregate(g *nn.Graph, h *nn.Node, w, b *nn.Param, lists **Neighbours) *nn.Node {
	return g.Apply("aggregate", &aggregate{lists: lists}, h.Shape()[0], w.Shape[1], h, g.Param(w), g.Param(b))
}

// aggregate takes h, W, b.
type aggregate struct {
	lists **Neighbours
	from  []int32 // [N,d] the neighbour each maximum came from, -1 for none
}

func (k *aggregate) Forward(c *nn.Context, in []nn.Mat, out nn.Mat) {
	lists := *k.lists
	if k.from == nil {
		k.from = make([]int32, len(out.V))
	}
	z := nn.Mat{N: out.N, D: out.D, V: c.Shared(nn.FirstFreeKey, len(out.V))}
	nn.LinearForward(c, nn.Sigmoid, in[:1], in[1:2], in[2].V, z)
	c.Rows(out.N, func(_, _ int, _ bool, lo, hi int) {
		for v := lo; v < hi; v++ {
			row, from := out.Row(v), k.from[v*out.D:(v+1)*out.D]
			near := lists.Index[lists.Start[v]:lists.Start[v+1]]
			if len(near) == 0 {
				clear(row)
				for i := range from {
					from[i] = -1
				}
				continue
			}
			copy(row, z.Row(int(near[0])))
			for i := range from {
				from[i] = near[0]
			}
			for _, u := range near[1:] {
				vec.MaxArg(row, from, z.Row(int(u)), u)
			}
		}
	})
}

// Backward sends each element's gradient to the neighbour that won. The
// sigmoid's output there is the maximum itself, so it need not be kept.
func (k *aggregate) Backward(c *nn.Context, in []nn.Mat, out, grad nn.Mat, din []nn.Mat) {
	d := out.D
	dz := nn.Mat{N: out.N, D: d, V: c.Shared(nn.FirstFreeKey, len(out.V))}
	clear(dz.V)
	// Several nodes may have the same neighbour: workers share columns, not rows.
	const columns = 32
	c.Each((d+columns-1)/columns, func(_, block int) {
		c0, c1 := block*columns, min((block+1)*columns, d)
		for v := range out.N {
			y, g, from := out.V[v*d+c0:v*d+c1], grad.V[v*d+c0:v*d+c1], k.from[v*d+c0:v*d+c1]
			g, from = g[:len(y)], from[:len(y)]
			for i, m := range y {
				if u := from[i]; u >= 0 {
					dz.V[int(u)*d+c0+i] += g[i] * m * (1 - m)
				}
			}
		}
	})
	nn.LinearBackward(c, nn.Identity, in[:1], in[1:2], dz, dz, din[:1], din[1:2], din[2].V)
}

// AggregateOp is Aggregate in an nn.Program; its inputs are h, w, b. Neighbours
// that Lists points to do not change: other lists are another pointer.
type AggregateOp struct{ Lists **Neighbours }

// Describe is as nn.Described says.
func (k *aggregate) Describe() any { return AggregateOp{k.lists} }
