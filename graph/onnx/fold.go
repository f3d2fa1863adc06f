package onnx

import (
	"math"

	"placer/graph"
)

// fold records the elements of output 0, if v has as many as its shape says.
func (c *call) fold(v *value) {
	if v != nil && len(c.out) > 0 && c.out[0].shape != nil && int64(v.len()) == c.out[0].elements() {
		c.out[0].value = v
	}
}

// foldNode computes the elements of output 0 where those of all inputs are
// known: the arithmetic on shapes that exporters write.
func (c *call) foldNode() {
	if len(c.out) == 0 || c.out[0].value != nil || c.out[0].shape == nil || c.out[0].elements() > maxValue || len(c.in) == 0 {
		return
	}
	for _, t := range c.in {
		if t != nil && t.value == nil {
			return
		}
	}
	if !c.has(0) {
		return
	}
	switch op := c.node.key(); op {
	case "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		c.fold(c.in[0].value)
	case "Cast":
		c.fold(c.in[0].value.cast(c.out[0].elem))
	case "Gather", "Slice", "Transpose", "Expand", "Tile":
		c.foldMove(op)
	case "Concat":
		c.foldConcat()
	case "Split":
		c.foldSplit()
	case "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin":
		c.foldReduce(op)
	default:
		c.foldElementwise(op)
	}
}

func (v *value) cast(e elem) *value {
	switch {
	case e.float():
		out := &value{f: []float64{}}
		for k := range v.len() {
			out.f = append(out.f, v.at(k))
		}
		return out
	case e == elemBool:
		out := intValue()
		for k := range v.len() {
			out.i = append(out.i, truth(v.at(k) != 0))
		}
		return out
	case v.f == nil:
		return v
	}
	out := intValue()
	for _, x := range v.f {
		if math.IsNaN(x) || math.Abs(x) > 1<<62 {
			return nil
		}
		out.i = append(out.i, int64(x))
	}
	return out
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// pick returns the elements of v at the given places.
func (v *value) pick(at []int64) *value {
	out := &value{}
	if v.f == nil {
		out.i = []int64{}
	}
	for _, k := range at {
		if v.f == nil {
			out.i = append(out.i, v.i[k])
		} else {
			out.f = append(out.f, v.f[k])
		}
	}
	return out
}

// walk calls f with the index of every element of a tensor of shape s, in order.
func walk(s graph.Shape, f func(index []int64)) {
	index := make([]int64, len(s))
	n, err := s.Elements()
	if err != nil {
		return
	}
	for range n {
		f(index)
		for k := len(s) - 1; k >= 0; k-- {
			if index[k]++; index[k] < s[k] {
				break
			}
			index[k] = 0
		}
	}
}

// offset returns the place of the element at index of a tensor of shape s.
func offset(s graph.Shape, index []int64) (at int64) {
	for k, d := range s {
		at = at*d + index[k]
	}
	return at
}

// foldMove computes operators whose output elements are copies of elements of
// input 0.
func (c *call) foldMove(op string) {
	in, out := c.in[0].shape, c.out[0].shape
	from := make([]int64, len(in)) // index of the element to copy
	ok := true
	var at []int64
	move := c.mover(op, in, from)
	if move == nil {
		return
	}
	walk(out, func(index []int64) {
		move(index)
		for k, d := range in {
			ok = ok && from[k] >= 0 && from[k] < d
		}
		if ok {
			at = append(at, offset(in, from))
		}
	})
	if ok {
		c.fold(c.in[0].value.pick(at))
	}
}

// mover returns the function that sets from for an index of the output.
func (c *call) mover(op string, in graph.Shape, from []int64) func(index []int64) {
	switch op {
	case "Gather":
		axis := c.axis(c.node.int("axis", 0), len(in))
		ids, ok := c.known(1)
		if !ok {
			return nil
		}
		shape := c.in[1].shape
		return func(index []int64) {
			copy(from, index[:axis])
			id := ids[offset(shape, index[axis:axis+len(shape)])]
			if id < 0 {
				id += in[axis]
			}
			from[axis] = id
			copy(from[axis+1:], index[axis+len(shape):])
		}
	case "Slice":
		first, step := make([]int64, len(in)), make([]int64, len(in))
		for k := range step {
			step[k] = 1
		}
		starts, ends, axes, steps := c.list(1, "starts"), c.list(2, "ends"), c.list(3, "axes"), c.list(4, "")
		for k := range starts {
			axis, s := k, int64(1)
			if axes != nil {
				axis = c.axis(axes[k], len(in))
			}
			if steps != nil {
				s = max(min(steps[k], maxDim), -maxDim)
			}
			first[axis], _ = c.slicing(in[axis], starts[k], ends[k], s)
			step[axis] = s
		}
		return func(index []int64) {
			for k := range from {
				from[k] = first[k] + step[k]*index[k]
			}
		}
	case "Transpose":
		perm := c.node.ints("perm")
		return func(index []int64) {
			for k := range from {
				if len(perm) == 0 {
					from[k] = index[len(from)-1-k]
				} else {
					from[c.axis(perm[k], len(in))] = index[k]
				}
			}
		}
	}
	return func(index []int64) { // Expand, Tile: repeat from the last axis on
		for k := range from {
			from[k] = index[len(index)-len(from)+k] % max(in[k], 1)
		}
	}
}

func (c *call) foldConcat() {
	axis := c.axis(c.node.int("axis", 0), len(c.out[0].shape))
	whole := true // all elements before those of the next input
	for k, d := range c.out[0].shape {
		whole = whole && (k >= axis || d == 1)
	}
	if !whole {
		return
	}
	out := &value{}
	for i := range c.in {
		if !c.has(i) || i > 0 && (c.in[i].value.f == nil) != (c.in[0].value.f == nil) {
			return
		}
		out.i, out.f = append(out.i, c.in[i].value.i...), append(out.f, c.in[i].value.f...)
	}
	if out.len() == 0 {
		out.i = []int64{}
	}
	c.fold(out)
}

// foldSplit computes the parts of a vector.
func (c *call) foldSplit() {
	if len(c.in[0].shape) != 1 {
		return
	}
	begin := int64(0)
	for _, t := range c.out {
		var at []int64
		for k := range t.elements() {
			at = append(at, begin+k)
		}
		begin += int64(len(at))
		t.value = c.in[0].value.pick(at)
	}
}

// foldReduce computes the reduction of all elements to one.
func (c *call) foldReduce(op string) {
	v := c.in[0].value
	if c.out[0].elements() != 1 || v.len() == 0 {
		return
	}
	f, ok := binaryOps[map[string]string{"ReduceSum": "Add", "ReduceProd": "Mul", "ReduceMax": "Max", "ReduceMin": "Min"}[op]]
	if !ok {
		return
	}
	acc := v.pick([]int64{0})
	for k := 1; k < v.len(); k++ {
		acc = f.apply(acc, v.pick([]int64{int64(k)}))
	}
	c.fold(acc)
}

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
