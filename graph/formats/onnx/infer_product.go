package onnx

import (
	"maps"
	"slices"
	"strings"

	"placer/graph"
)

var productRules = map[string]rule{
	"MatMul": {"MatMul", matMul}, "Gemm": {"Gemm", gemmOp}, "Einsum": {"Einsum", einsum},
	"MatMulInteger": {"MatMulInteger", func(c *call) { matMulOf(c, 0, 1, elemInt32) }},
	"QLinearMatMul": {"QLinearMatMul", func(c *call) { matMulOf(c, 0, 3, c.elem(7)) }},
	"FusedMatMul":   {"MatMul", fusedMatMul}, "com.microsoft.FusedMatMul": {"MatMul", fusedMatMul}, "com.microsoft.TransposeMatMul": {"MatMul", fusedMatMul},
	"com.microsoft.FusedGemm":             {"Gemm", gemmOp},
	"com.microsoft.MatMulIntegerToFloat":  {"MatMulInteger", func(c *call) { matMulOf(c, 0, 1, c.elem(2)) }},
	"com.microsoft.DynamicQuantizeMatMul": {"MatMulInteger", func(c *call) { matMulOf(c, 0, 1, elemFloat) }},
	"com.microsoft.MatMulNBits":           {"MatMulNBits", matMulNBits},
	"com.microsoft.QGemm":                 {"MatMulInteger", qGemm},
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

// einsum supports letters, spaces and one ellipsis an operand.
func einsum(c *call) {
	equation := strings.ReplaceAll(c.node.string("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(c.in) {
		c.fail("equation %.40q has %d terms for %d inputs", equation, len(terms), len(c.in))
	}
	size := map[rune]int64{} // letter -> dimension
	count := map[rune]int{}
	var dots graph.Shape // dimensions that the ellipsis stands for
	var letters [][]rune // of each term, those of the ellipsis included
	for i, term := range terms {
		s := c.shape(i)
		before, after, open := strings.Cut(term, "...")
		head, tail := []rune(before), []rune(after)
		n := len(s) - len(head) - len(tail)
		if n < 0 || !open && n != 0 {
			c.fail("equation %.40q: input %d is %v", equation, i, s)
		}
		dots = c.broadcast(dots, s[len(head):len(head)+n])
		all := append(append([]rune{}, head...), tail...)
		for k, r := range all {
			d := s[k]
			if k >= len(head) {
				d = s[k+n]
			}
			if old, ok := size[r]; ok && old != d && old != 1 && d != 1 {
				c.fail("equation %.40q: %c is both %d and %d", equation, r, old, d)
			} else if !ok || old == 1 {
				size[r] = d
			}
			count[r]++
		}
		// A term does not vary along a dimension of 1, which is repeated for the others.
		for k, d := range s[len(head) : len(head)+n] {
			if d != 1 {
				all = append(all, dotted(n-k))
			}
		}
		letters = append(letters, all)
	}
	if !explicit {
		right = implicitOutput(count)
	}
	var out graph.Shape
	kept := map[rune]bool{}
	for k, d := range dots {
		r := dotted(len(dots) - k)
		size[r], kept[r] = d, true
	}
	before, after, open := strings.Cut(right, "...")
	for k, part := range []string{before, after} {
		if k == 1 && open {
			out = append(out, dots...)
		}
		for _, r := range part {
			if count[r] == 0 || kept[r] {
				c.fail("equation %.40q: output %c", equation, r)
			}
			kept[r] = true
			out = append(out, size[r])
		}
	}
	c.set(0, c.elem(0), out)
	c.einsumCost(letters, size, kept)
}

// dotted is the letter that stands for the dimension of an ellipsis that has n-1 more
// behind it.
func dotted(n int) rune { return rune(-n) }

// implicitOutput lists the letters that occur once, in order, after an ellipsis.
func implicitOutput(count map[rune]int) string {
	out := "..."
	for r := 'A'; r <= 'z'; r++ {
		if count[r] == 1 {
			out += string(r)
		}
	}
	return out
}

// einsumCost: two operands with a common letter that is summed make a product;
// anything else costs a multiply-add for each combination of indices.
func (c *call) einsumCost(letters [][]rune, size map[rune]int64, kept map[rune]bool) {
	side := map[rune]int{}
	for k, term := range letters {
		for _, r := range term {
			side[r] |= 1 << min(k, 8)
		}
	}
	batch, m, n, k := int64(1), int64(1), int64(1), int64(1)
	for _, r := range slices.Sorted(maps.Keys(side)) {
		switch s := side[r]; {
		case s == 3 && kept[r]:
			batch = c.mul(batch, size[r])
		case s == 3:
			k = c.mul(k, size[r])
		case s == 1:
			m = c.mul(m, size[r])
		default:
			n = c.mul(n, size[r])
		}
	}
	if len(letters) == 2 && k > 1 {
		c.multiply(batch, m, n, k)
		return
	}
	c.kind = "EinsumElementwise"
	c.flops = flops(2 * float64(batch) * float64(m) * float64(n) * float64(k))
}
