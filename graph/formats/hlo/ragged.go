package hlo

import "placer/graph"

// ragged returns the product of rows in groups by a matrix for each group, as a mixture's experts
// have them (lax.ragged_dot), or its gradient, which has a matrix for each group. Which group has
// how many rows is in an operand; all together they are as one product.
func (x *instruction) ragged() graph.GEMM {
	if len(x.operands) < 2 || x.operands[0].shape.is || x.operands[1].shape.is {
		return graph.GEMM{}
	}
	a, b := x.operands[0].shape.dims, x.operands[1].shape.dims
	g := graph.GEMM{Batch: 1, M: 1, N: 1, K: 1}
	for i, d := range a {
		switch {
		case has(x.attr.contracting, i):
			g.K *= d
		case has(x.attr.batch, i):
			g.Batch *= d
		default:
			g.M *= d
		}
	}
	for i, d := range b {
		if !has(x.attr.rightContracting, i) && !has(x.attr.rightBatch, i) && !has(x.attr.groupDims, i) {
			g.N *= d
		}
	}
	if g.Batch < 1 || g.M < 1 || g.N < 1 || g.K < 1 || g.FLOPs() > 1e28 {
		return graph.GEMM{}
	}
	return g
}
