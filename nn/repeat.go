package nn

import (
	"fmt"

	"placer/nn/vec"
)

// AddRepeated returns x [n,D] plus a [Na,D], n a multiple of Na: row r of the
// result is x[r] + a[r mod Na].
func (g *Graph) AddRepeated(x, a *Node) *Node {
	s, t := x.Shape(), a.Shape()
	if s[1] != t[1] || s[0]%t[0] != 0 {
		panic(fmt.Sprintf("nn: sum of %v and repeated %v", s, t))
	}
	return g.Apply("add", addRepeated{}, s[0], s[1], x, a)
}

type addRepeated struct{}

func (addRepeated) Forward(c *Context, in []Mat, out Mat) {
	c.Rows(out.N, func(_, _ int, _ bool, lo, hi int) {
		eachBlock(in[1].N, lo, hi, func(a0, a1, b0, b1 int) {
			vec.Add(out.Rows(b0, b1).V, in[0].Rows(b0, b1).V, in[1].Rows(a0, a1).V)
		})
	})
}

func (addRepeated) Backward(c *Context, _ []Mat, _, grad Mat, din []Mat) {
	if din[0].V != nil {
		copy(din[0].V, grad.V)
	}
	if din[1].V != nil {
		sumRepeats(c, grad, din[1])
	}
}

// sumRepeats writes into dst [n,D] the sum of the stacked copies in src [kn,D].
func sumRepeats(c *Context, src, dst Mat) {
	c.Rows(dst.N, func(_, _ int, _ bool, lo, hi int) {
		copy(dst.Rows(lo, hi).V, src.Rows(lo, hi).V)
		for o := dst.N; o < src.N; o += dst.N {
			vec.Add(dst.Rows(lo, hi).V, dst.Rows(lo, hi).V, src.Rows(o+lo, o+hi).V)
		}
	})
}

// AddEmbedding returns the rows of h [N,D] repeated to rows, plus row index[r] of
// the table [A,D]: out[r] = h[r mod N] + table[index[r]]. Index -1 adds nothing.
// index is read at each run and holds rows entries then.
func (g *Graph) AddEmbedding(h *Node, table *Param, rows int, index *[]int32) *Node {
	s := h.Shape()
	if s[1] != table.Shape[1] || rows%s[0] != 0 {
		panic(fmt.Sprintf("nn: embedding %s %v added to %v repeated to %d rows", table.Name, table.Shape, s, rows))
	}
	return g.Apply("embedding", &embedding{index}, rows, s[1], h, g.Param(table))
}

type embedding struct{ index *[]int32 }

func (k *embedding) Forward(c *Context, in []Mat, out Mat) {
	h, table, index := in[0], in[1], *k.index
	if len(index) != out.N {
		panic(fmt.Sprintf("nn: %d embedding indices for %d rows", len(index), out.N))
	}
	c.Rows(out.N, func(_, _ int, _ bool, lo, hi int) {
		for r := lo; r < hi; r++ {
			src := h.Row(r % h.N)
			if i := index[r]; i >= 0 {
				vec.Add(out.Row(r), src, table.Row(int(i)))
			} else {
				copy(out.Row(r), src)
			}
		}
	})
}

func (k *embedding) Backward(c *Context, _ []Mat, out, grad Mat, din []Mat) {
	if din[0].V != nil {
		sumRepeats(c, grad, din[0])
	}
	table, index := din[1], *k.index
	c.Rows(out.N, func(_, piece int, first bool, lo, hi int) {
		sum := Mat{table.N, table.D, c.OfPiece(piece, keyWeight0, len(table.V))}
		if first {
			clear(sum.V)
		}
		for r := lo; r < hi; r++ {
			if i := index[r]; i >= 0 {
				vec.Add(sum.Row(int(i)), sum.Row(int(i)), grad.Row(r))
			}
		}
	})
	c.SumPieces(out.N, keyWeight0, table.V)
}
