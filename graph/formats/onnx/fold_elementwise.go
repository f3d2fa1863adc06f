package onnx

import "math"

// scalarOp is an elementwise operator on integers and on floats; either may be
// absent.
type scalarOp struct {
	i func(a, b int64) (int64, bool)
	f func(a, b float64) float64
	b func(a, b float64) bool // comparison
}

func whole(f func(a, b int64) int64) func(a, b int64) (int64, bool) {
	return func(a, b int64) (int64, bool) { return f(a, b), true }
}

// binaryOps holds the operators of two operands.
var binaryOps = map[string]scalarOp{
	"Add": {i: whole(func(a, b int64) int64 { return a + b }), f: func(a, b float64) float64 { return a + b }},
	"Sub": {i: whole(func(a, b int64) int64 { return a - b }), f: func(a, b float64) float64 { return a - b }},
	"Mul": {i: whole(func(a, b int64) int64 { return a * b }), f: func(a, b float64) float64 { return a * b }},
	"Div": {i: func(a, b int64) (int64, bool) {
		if b == 0 {
			return 0, false
		}
		return a / b, true
	}, f: func(a, b float64) float64 { return a / b }},
	"Mod": {i: func(a, b int64) (int64, bool) {
		if b == 0 {
			return 0, false
		}
		if m := a % b; m != 0 && (m < 0) != (b < 0) {
			return m + b, true
		}
		return a % b, true
	}},
	"Max":            {i: whole(func(a, b int64) int64 { return max(a, b) }), f: math.Max},
	"Min":            {i: whole(func(a, b int64) int64 { return min(a, b) }), f: math.Min},
	"Pow":            {f: math.Pow},
	"Equal":          {b: func(a, b float64) bool { return a == b }},
	"Greater":        {b: func(a, b float64) bool { return a > b }},
	"Less":           {b: func(a, b float64) bool { return a < b }},
	"GreaterOrEqual": {b: func(a, b float64) bool { return a >= b }},
	"LessOrEqual":    {b: func(a, b float64) bool { return a <= b }},
	"And":            {b: func(a, b float64) bool { return a != 0 && b != 0 }},
	"Or":             {b: func(a, b float64) bool { return a != 0 || b != 0 }},
	"Xor":            {b: func(a, b float64) bool { return (a != 0) != (b != 0) }},
}

// unaryOps holds the operators of one operand, on floats.
var unaryOps = map[string]func(float64) float64{
	"Neg": func(a float64) float64 { return -a }, "Abs": math.Abs, "Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven, "Sqrt": math.Sqrt,
	"Reciprocal": func(a float64) float64 { return 1 / a }, "Relu": func(a float64) float64 { return math.Max(a, 0) },
}

// apply computes one element.
func (o scalarOp) apply(a, b *value) *value {
	switch {
	case a == nil || b == nil:
		return nil
	case o.b != nil:
		return intValue(truth(o.b(a.at(0), b.at(0))))
	case a.f == nil && b.f == nil:
		if o.i == nil {
			return nil
		}
		x, ok := o.i(a.i[0], b.i[0])
		if !ok {
			return nil
		}
		return intValue(x)
	case o.f == nil:
		return nil
	}
	return &value{f: []float64{o.f(a.at(0), b.at(0))}}
}

// foldElementwise computes operators on the elements at one index.
func (c *call) foldElementwise(op string) {
	f, isBinary := binaryOps[op]
	g, isUnary := unaryOps[op]
	if !isBinary && !isUnary && op != "Not" && op != "Where" || c.node.int("broadcast", 0) != 0 {
		return
	}
	for i := range c.in {
		if !c.has(i) {
			return
		}
	}
	if op == "Where" && len(c.in) != 3 {
		return
	}
	element := func(i int, index []int64) *value {
		s := c.in[i].shape
		at := make([]int64, len(s))
		for k, d := range s {
			if d > 1 {
				at[k] = index[len(index)-len(s)+k]
			}
		}
		return c.in[i].value.pick([]int64{offset(s, at)})
	}
	all := &value{}
	ok := true
	walk(c.out[0].shape, func(index []int64) {
		if !ok {
			return
		}
		x := element(0, index)
		switch {
		case op == "Not":
			x = intValue(1 - truth(x.at(0) != 0))
		case op == "Where":
			if x.at(0) != 0 {
				x = element(1, index)
			} else {
				x = element(2, index)
			}
		case isUnary && x.f == nil:
			switch op {
			case "Neg":
				x = intValue(-x.i[0])
			case "Abs":
				x = intValue(max(x.i[0], -x.i[0]))
			case "Relu":
				x = intValue(max(x.i[0], 0))
			default:
				x = nil
			}
		case isUnary:
			x = &value{f: []float64{g(x.f[0])}}
		default:
			for i := 1; i < len(c.in); i++ {
				x = f.apply(x, element(i, index))
			}
		}
		if ok = x != nil; ok {
			all.i, all.f = append(all.i, x.i...), append(all.f, x.f...)
		}
	})
	if !ok || len(all.i) > 0 && len(all.f) > 0 {
		return
	}
	if all.len() == 0 {
		all.i = []int64{}
	}
	c.fold(all)
}
