package nn

import (
	"fmt"

	"placer/nn/vec"
)

// Attend returns, for each query, the mean of a memory weighted by the softmax of
// the products of the query and the memory's rows, [KT,d]: multiplicative
// attention (Luong et al., 2015, section 3.1), "general" where the queries are a
// Linear of states. queries [KT,d] belong to K sequences of T rows; memory is
// [S,d] if all share it and [KS,d] otherwise.
func (g *Graph) Attend(queries, memory *Node, sequences int, shared bool) *Node {
	q, m := queries.Shape(), memory.Shape()
	if sequences < 1 || q[0]%sequences != 0 || q[1] != m[1] || !shared && m[0]%sequences != 0 {
		panic(fmt.Sprintf("nn: %d sequences of queries %v attend to %v, shared %v", sequences, q, m, shared))
	}
	return g.Apply("attend", &attend{sequences: sequences, shared: shared}, q[0], q[1], queries, memory)
}

type attend struct {
	sequences int
	shared    bool

	weights []float32 // [KT,S]
}

// of returns the rows of m, per sequence, that belong to sequence s.
func (k *attend) of(m Mat, s int) Mat {
	if k.shared {
		return m
	}
	n := m.N / k.sequences
	return m.Rows(s*n, (s+1)*n)
}

func (k *attend) Forward(c *Context, in []Mat, out Mat) {
	n := out.N / k.sequences
	length := k.of(in[1], 0).N
	weights := c.Kept(&k.weights, keyGrad, out.N*length)
	for s := range k.sequences {
		q, m, y := in[0].Rows(s*n, (s+1)*n), k.of(in[1], s), out.Rows(s*n, (s+1)*n)
		p := Mat{n, length, weights[s*n*length : (s+1)*n*length]}
		c.Gemm(false, true, n, length, m.D, q.V, q.D, m.V, m.D, 0, p.V, length)
		for r := range n {
			Softmax(p.Row(r))
		}
		c.Gemm(false, false, n, m.D, length, p.V, length, m.V, m.D, 0, y.V, y.D)
	}
}

// Softmax replaces x by its softmax, in single precision; see SoftmaxRow.
func Softmax(x []float32) {
	vec.Scale(x, 1/vec.ExpShiftSum(x, x, 1, vec.Max(x)))
}

func (k *attend) Backward(c *Context, in []Mat, _, grad Mat, din []Mat) {
	n := grad.N / k.sequences
	length := k.of(in[1], 0).N
	dp := Mat{n, length, c.Shared(keyGrad, n*length)}
	dm := din[1]
	if dm.V != nil {
		clear(dm.V)
	}
	for s := range k.sequences {
		q, m, dy := in[0].Rows(s*n, (s+1)*n), k.of(in[1], s), grad.Rows(s*n, (s+1)*n)
		p := Mat{n, length, k.weights[s*n*length : (s+1)*n*length]}
		c.Gemm(false, true, n, length, m.D, dy.V, dy.D, m.V, m.D, 0, dp.V, length)
		for r := range n {
			row := dp.Row(r)
			vec.SoftmaxBack(row, p.Row(r), row, vec.Dot(p.Row(r), row), 1)
		}
		if din[0].V != nil {
			c.Gemm(false, false, n, m.D, length, dp.V, length, m.V, m.D, 0, din[0].V[s*n*m.D:(s+1)*n*m.D], m.D)
		}
		if dm.V != nil {
			d := k.of(dm, s)
			c.Gemm(true, false, length, m.D, n, dp.V, length, q.V, q.D, 1, d.V, d.D)
			c.Gemm(true, false, length, m.D, n, p.V, length, dy.V, dy.D, 1, d.V, d.D)
		}
	}
}
