package einsum

import (
	"fmt"
	"math"
	"strings"

	"placer/graph"
	"placer/units"
)

// Sum is what an equation makes of operands of known shapes.
type Sum struct {
	Output graph.Shape
	// GEMM is the matrix product of a sum of two operands over an index of both; zero for
	// any other sum.
	GEMM graph.GEMM
	// FLOPs are those of GEMM, or a multiplication and an addition for each combination of
	// the indices.
	FLOPs units.FLOPs
}

// maxEquation bounds an equation: one of NumPy has at most 52 letters an operand.
const maxEquation = 1 << 12

// index is a letter of an equation, or a dimension that an ellipsis stands for: its size,
// and bit k for each operand k < 8 that runs along it.
type index struct {
	size int64
	side int
	kept bool // in the result
}

// equation is one being read.
type equation struct {
	text    string
	letters map[rune]*index
	count   map[rune]int
	order   []*index // as they first stand there
	dots    []*index // of the ellipsis, outermost first
}

// Of returns the sum that an equation makes of operands of these shapes. It reads letters,
// spaces and one ellipsis an operand; a dimension of 1 is repeated as often as another
// operand's needs. Without "->" the result has the letters that occur once, in order, after
// the ellipsis.
func Of(text string, operands ...[]int64) (*Sum, error) {
	e := &equation{text: strings.ReplaceAll(text, " ", ""), letters: map[rune]*index{}, count: map[rune]int{}}
	if len(e.text) > maxEquation {
		return nil, e.fail("is of %d letters", len(e.text))
	}
	left, right, explicit := strings.Cut(e.text, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(operands) {
		return nil, e.fail("has %d terms for %d operands", len(terms), len(operands))
	}
	for k, term := range terms {
		if err := e.operand(k, term, operands[k]); err != nil {
			return nil, err
		}
	}
	if !explicit {
		right = e.implicit()
	}
	s := &Sum{}
	var err error
	if s.Output, err = e.result(right); err != nil {
		return nil, err
	}
	s.GEMM, s.FLOPs = e.cost(len(operands))
	return s, nil
}

func (e *equation) fail(format string, a ...any) error {
	return fmt.Errorf("equation %.40q %s", e.text, fmt.Sprintf(format, a...))
}

// operand reads the term of operand k, which has shape s.
func (e *equation) operand(k int, term string, s []int64) error {
	before, after, dotted := strings.Cut(term, "...")
	head, tail := []rune(before), []rune(after)
	n := len(s) - len(head) - len(tail)
	if n < 0 || !dotted && n != 0 {
		return e.fail("has %q for an operand of shape %v", term, s)
	}
	for _, d := range s {
		if d < 0 {
			return e.fail("has an operand of shape %v", s)
		}
	}
	for len(e.dots) < n { // the ellipses of operands are aligned at their ends
		i := &index{size: 1}
		e.dots, e.order = append([]*index{i}, e.dots...), append(e.order, i)
	}
	for i, d := range s[len(head) : len(head)+n] {
		if !e.dots[len(e.dots)-n+i].meet(k, d) {
			return e.fail("has an ellipsis that is both %d and %d", e.dots[len(e.dots)-n+i].size, d)
		}
	}
	for i, r := range append(head, tail...) {
		if r == '.' {
			return e.fail("has two ellipses in an operand")
		}
		d := s[i]
		if i >= len(head) {
			d = s[i+n]
		}
		x := e.letters[r]
		if x == nil {
			x = &index{size: 1}
			e.letters[r], e.order = x, append(e.order, x)
		}
		if e.count[r]++; !x.meet(k, d) {
			return e.fail("has %c that is both %d and %d", r, x.size, d)
		}
	}
	return nil
}

// meet has operand k run along x with size d, and reports whether that is x's own. An
// operand with a dimension of 1 is repeated along x.
func (x *index) meet(k int, d int64) bool {
	if d != 1 {
		if x.size != 1 && x.size != d {
			return false
		}
		x.size = d
		x.side |= 1 << min(k, 8)
	}
	return true
}

// implicit is the result that an equation has without an arrow.
func (e *equation) implicit() string {
	out := "..."
	for r := 'A'; r <= 'z'; r++ {
		if e.count[r] == 1 {
			out += string(r)
		}
	}
	return out
}

// result reads the result's term and returns its shape.
func (e *equation) result(term string) (graph.Shape, error) {
	out := graph.Shape{}
	before, after, dotted := strings.Cut(term, "...")
	for k, part := range []string{before, after} {
		if k == 1 && dotted {
			for _, x := range e.dots {
				x.kept = true
				out = append(out, x.size)
			}
		}
		for _, r := range part {
			x := e.letters[r]
			if x == nil || x.kept {
				return nil, e.fail("has %c in its result, which no operand has or which stands there twice", r)
			}
			x.kept = true
			out = append(out, x.size)
		}
	}
	return out, nil
}

// cost returns the product of a sum of two operands: its batch are the indices of both
// that the result keeps, its depth those of both that it sums.
func (e *equation) cost(operands int) (graph.GEMM, units.FLOPs) {
	g := graph.GEMM{Batch: 1, M: 1, N: 1, K: 1}
	all := 2.0
	for _, x := range e.order {
		all *= float64(x.size)
		to := &g.N
		switch {
		case x.side == 3 && x.kept:
			to = &g.Batch
		case x.side == 3:
			to = &g.K
		case x.side == 1:
			to = &g.M
		}
		*to = times(*to, x.size)
	}
	if operands != 2 || g.K < 2 || g.Batch == 0 || g.M == 0 || g.N == 0 {
		return graph.GEMM{}, units.FLOPs(all)
	}
	return g, g.FLOPs()
}

// times is a times b, of which neither is below zero, or the largest number where that is
// too large.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
