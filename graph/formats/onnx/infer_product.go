package onnx

import (
	"placer/graph"
	"placer/graph/einsum"
)

var productRules = map[string]rule{
	"MatMul": {"MatMul", matMul}, "Gemm": {"Gemm", gemmOp}, "Einsum": {"Einsum", einstein},
	"MatMulInteger": {"MatMulInteger", func(c *call) { matMulOf(c, 0, 1, elemInt32) }},
	"QLinearMatMul": {"QLinearMatMul", func(c *call) { matMulOf(c, 0, 3, c.elem(7)) }},
	"FusedMatMul":   {"MatMul", fusedMatMul}, "com.microsoft.FusedMatMul": {"MatMul", fusedMatMul}, "com.microsoft.TransposeMatMul": {"MatMul", fusedMatMul},
	"com.microsoft.FusedGemm":             {"Gemm", gemmOp},
	"com.microsoft.MatMulIntegerToFloat":  {"MatMulInteger", func(c *call) { matMulOf(c, 0, 1, c.elem(2)) }},
	"com.microsoft.DynamicQuantizeMatMul": {"MatMulInteger", func(c *call) { matMulOf(c, 0, 1, elemFloat) }},
	"com.microsoft.MatMulNBits":           {"MatMulNBits", matMulNBits},
	"com.microsoft.MatMulBnb4":            {"MatMulNBits", matMulNBits},
	"com.microsoft.FusedMatMulActivation": {"MatMul", fusedMatMul}, "com.microsoft.GemmFastGelu": {"MatMul", matMul},
	"com.microsoft.MatMulInteger16": {"MatMulInteger", func(c *call) { matMulOf(c, 0, 1, elemInt32) }},
	"com.microsoft.QGemm":           {"MatMulInteger", qGemm},
}

func matMul(c *call) { matMulOf(c, 0, 1, c.elem(0)) }

// matMulOf infers the product of inputs a and b.
func matMulOf(c *call, a, b int, e elem) { c.set(0, e, c.matMulShape(c.shape(a), c.shape(b))) }

// matMulShape returns the shape of NumPy's product of a and b and adds the cost.
// One right operand for all batches makes one product of the rows of all.
func (c *call) matMulShape(a, b graph.Shape) graph.Shape {
	if len(a) == 0 || len(b) == 0 {
		c.fail("product of %v and %v", a, b)
	}
	row, column := len(a) == 1, len(b) == 1
	if row {
		a = join([]int64{1}, a)
	}
	if column {
		b = join(b, []int64{1})
	}
	na, nb := len(a)-2, len(b)-2
	m, k, n := a[na], a[na+1], b[nb+1]
	if b[nb] != k {
		c.fail("product of %v and %v: %d columns against %d rows", a, b, k, b[nb])
	}
	batch := c.broadcast(a[:na], b[:nb])
	size := c.product(batch)
	if c.product(b[:nb]) == 1 {
		c.multiply(1, c.mul(size, m), n, k)
	} else {
		c.multiply(size, m, n, k)
		if c.kind == "MatMul" {
			c.kind = "BatchMatMulV2"
		}
	}
	out := append(graph.Shape{}, batch...)
	if !row {
		out = append(out, m)
	}
	if !column {
		out = append(out, n)
	}
	return out
}

// fusedMatMul may transpose its operands (or their first dimensions, which it
// moves behind the others).
func fusedMatMul(c *call) {
	operand := func(i int, trans, transBatch string) graph.Shape {
		s := append(graph.Shape{}, c.shape(i)...)
		n := len(s)
		if n >= 2 && c.node.int(transBatch, 0) != 0 {
			first := s[0]
			copy(s, s[1:n-1])
			s[n-2] = first
		}
		if n >= 2 && c.node.int(trans, 0) != 0 {
			s[n-1], s[n-2] = s[n-2], s[n-1]
		}
		return s
	}
	c.set(0, c.elem(0), c.matMulShape(operand(0, "transA", "transBatchA"), operand(1, "transB", "transBatchB")))
}

// gemmOp: A' x B' + C.
func gemmOp(c *call) { c.gemmOf(0, 1, 2, c.elem(0)) }

// gemmOf is gemmOp of the inputs given by their slots, with a result of type e.
func (c *call) gemmOf(first, second, bias int, e elem) {
	a, b := c.ranked(first, 2, 2), c.ranked(second, 2, 2)
	m, k, n := a[0], a[1], b[1]
	if c.node.int("transA", 0) != 0 {
		m, k = k, m
	}
	kb := b[0]
	if c.node.int("transB", 0) != 0 {
		kb, n = b[1], b[0]
	}
	if k != kb {
		c.fail("product of %v and %v: %d columns against %d rows", a, b, k, kb)
	}
	c.multiply(1, m, n, k)
	c.addBias(bias, graph.Shape{m, n})
	c.set(0, e, graph.Shape{m, n})
}

// qGemm: A, its scale and zero point, B, its scale and zero point, C, and scale and zero
// point of the result, which is a float where these are absent.
func qGemm(c *call) {
	e := elemFloat
	if c.has(8) {
		c.kind, e = "QLinearMatMul", c.elem(8)
	}
	c.gemmOf(0, 3, 6, e)
}

// matMulNBits multiplies by a packed matrix whose size attributes give.
func matMulNBits(c *call) {
	a := c.ranked(0, 1, maxRank)
	k, n := c.node.int("K", 0), c.node.int("N", 0)
	if a[len(a)-1] != k || n < 1 || n > maxDim {
		c.fail("product of %v and K=%d, N=%d", a, k, n)
	}
	c.multiply(1, c.product(a[:len(a)-1]), n, k)
	c.set(0, c.elem(0), with(a, len(a)-1, n))
}

// einstein is an Einsum of letters, spaces and one ellipsis an operand.
func einstein(c *call) {
	shapes := make([][]int64, len(c.in))
	for k := range c.in {
		shapes[k] = c.shape(k)
	}
	s, err := einsum.Of(c.node.string("equation", ""), shapes...)
	if err != nil {
		c.fail("%v", err)
	}
	c.set(0, c.elem(0), s.Output)
	if g := s.GEMM; !g.IsZero() {
		c.multiply(g.Batch, g.M, g.N, g.K)
		return
	}
	c.kind, c.flops = "EinsumElementwise", s.FLOPs
}
