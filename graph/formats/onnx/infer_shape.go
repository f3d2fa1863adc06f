package onnx

import (
	"math"

	"placer/graph"
	"placer/internal/words"
)

// shapeRules are the operators that change or make shapes and move no data.
var shapeRules = map[string]rule{
	"Shape": {"Shape", shapeOp}, "Size": {"Size", size},
	"Reshape": {"Reshape", reshape}, "Flatten": {"Flatten", flatten}, "Squeeze": {"Squeeze", squeeze}, "Unsqueeze": {"Unsqueeze", unsqueeze},
	"Constant": {"Const", constant}, "ConstantOfShape": {"Fill", constantOfShape}, "Range": {"Range", rangeOp}, "EyeLike": {"EyeLike", eyeLike},
}

// shapeOp: the dimensions from start to end.
func shapeOp(c *call) {
	s := c.shape(0)
	from, to := span(c.node.int("start", 0), len(s)), span(c.node.int("end", math.MaxInt64), len(s))
	dims := s[min(from, to):to]
	c.set(0, elemInt64, graph.Shape{int64(len(dims))})
	c.fold(intValue(dims...))
}

func size(c *call) {
	n := c.product(c.shape(0))
	c.set(0, elemInt64, graph.Shape{})
	c.fold(intValue(n))
}

// span clamps a position of a slice to 0..n.
func span(x int64, n int) int {
	if x < 0 {
		x += int64(n)
	}
	return int(min(max(x, 0), int64(n)))
}

// reshape: 0 copies a dimension (unless allowzero), -1 takes what is left.
func reshape(c *call) {
	in := c.shape(0)
	want, ok := c.known(1)
	if !ok && !c.has(1) {
		want, ok = c.node.ints("shape"), true
	}
	if !ok {
		c.notConstant(1)
	}
	out, rest, n := append(graph.Shape{}, want...), -1, int64(1)
	for k, d := range out {
		switch {
		case d == 0 && c.node.int("allowzero", 0) == 0:
			if k >= len(in) {
				c.fail("shape %v copies dimension %d of %v", want, k, in)
			}
			out[k] = in[k]
		case d == -1 && rest < 0:
			rest = k
			continue
		case d < 0:
			c.fail("cannot reshape %v to %v", in, want)
		}
		n = c.mul(n, out[k])
	}
	total := c.product(in)
	if rest >= 0 {
		if n == 0 {
			out[rest] = 0
		} else {
			out[rest] = total / n
			n = c.mul(n, out[rest])
		}
	}
	if n != total {
		c.fail("cannot reshape %v to %v", in, want)
	}
	c.set(0, c.elem(0), out)
}

func flatten(c *call) {
	s := c.shape(0)
	a := c.node.int("axis", 1)
	if a < -int64(len(s)) || a > int64(len(s)) {
		c.fail("axis %d of %s", a, words.Count(len(s), "dimension", "dimensions"))
	}
	k := span(a, len(s))
	c.set(0, c.elem(0), graph.Shape{c.product(s[:k]), c.product(s[k:])})
}

// squeeze removes the axes named, or all of size 1.
func squeeze(c *call) {
	s := c.shape(0)
	list := c.list(1, "axes")
	marked := c.axes(list, len(s))
	out := graph.Shape{}
	for k, d := range s {
		if d == 1 && len(list) == 0 {
			continue
		}
		if marked[k] && d != 1 {
			c.fail("axis %d of %v is not 1", k, s)
		}
		if !marked[k] {
			out = append(out, d)
		}
	}
	c.set(0, c.elem(0), out)
}

func unsqueeze(c *call) {
	s := c.shape(0)
	list := c.list(1, "axes")
	if len(list) > maxRank {
		c.fail("%d axes", len(list))
	}
	marked := c.axes(list, len(s)+len(list))
	out := graph.Shape{}
	for _, m := range marked {
		if m {
			out = append(out, 1)
		} else {
			out = append(out, s[0])
			s = s[1:]
		}
	}
	c.set(0, c.elem(0), out)
}

// constant: the tensor or list in one of six attributes.
func constant(c *call) {
	for i := range c.node.attrs {
		switch a := &c.node.attrs[i]; a.name {
		case "value", "sparse_value":
			if a.tensor == nil {
				c.fail("attribute %s holds no tensor", a.name)
			}
			c.set(0, elem(a.tensor.elem), a.tensor.dims)
			c.fold(a.tensor.decode())
		case "value_int":
			c.set(0, elemInt64, graph.Shape{})
			c.fold(intValue(a.i))
		case "value_ints":
			c.set(0, elemInt64, graph.Shape{int64(len(a.ints))})
			c.fold(intValue(a.ints...))
		case "value_float":
			c.set(0, elemFloat, graph.Shape{})
			c.fold(&value{f: []float64{float64(a.f)}})
		case "value_floats":
			c.set(0, elemFloat, graph.Shape{int64(len(a.floats))})
			c.fold(&value{f: append([]float64{}, a.floats...)})
		case "value_string", "value_strings":
			c.fail("strings are not supported")
		default:
			continue
		}
		return
	}
	c.fail("holds no value")
}

// constantOfShape fills a shape with one value, 0 by default.
func constantOfShape(c *call) {
	e, v := elemFloat, &value{f: []float64{0}}
	if a := c.node.attr("value"); a != nil && a.tensor != nil {
		e, v = elem(a.tensor.elem), a.tensor.decode()
	}
	s := graph.Shape(c.ints(0))
	if len(s) > maxRank {
		c.fail("shape of %d dimensions", len(s))
	}
	c.set(0, e, append(graph.Shape{}, s...))
	n := c.product(s)
	if v == nil || v.len() != 1 || n > maxValue {
		return
	}
	all := &value{}
	for range n {
		all.i, all.f = append(all.i, v.i...), append(all.f, v.f...)
	}
	if all.i == nil && all.f == nil {
		all.i = []int64{}
	}
	c.fold(all)
}

// rangeOp: start, limit, delta.
func rangeOp(c *call) {
	var x [3]float64
	for k := range x {
		t := c.input(k)
		if t.value == nil || t.value.len() != 1 {
			c.notConstant(k)
		}
		x[k] = t.value.at(0)
	}
	n := math.Max(math.Ceil((x[1]-x[0])/x[2]), 0)
	if !(n <= maxDim) {
		c.fail("range from %v to %v by %v", x[0], x[1], x[2])
	}
	c.set(0, c.elem(0), graph.Shape{int64(n)})
	if n > maxValue {
		return
	}
	v := &value{}
	for k := range int64(n) {
		if c.in[0].value.f != nil {
			v.f = append(v.f, x[0]+float64(k)*x[2])
		} else {
			v.i = append(v.i, c.in[0].value.i[0]+k*int64(x[2]))
		}
	}
	if v.len() == 0 {
		v.i = []int64{}
	}
	c.fold(v)
}

func eyeLike(c *call) {
	e := elem(c.node.int("dtype", int64(c.elem(0))))
	c.set(0, e, c.ranked(0, 2, 2))
}
