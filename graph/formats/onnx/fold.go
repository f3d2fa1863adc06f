package onnx

import (
	"math"

	"placer/graph"
)

// fold records the elements of output 0, if v has as many as its shape says. Floats are
// rounded to theirs: a size that a runtime computes in them may be one more or less in
// doubles.
func (c *call) fold(v *value) {
	if v != nil && len(c.out) > 0 && c.out[0].shape != nil && int64(v.len()) == c.out[0].elements() {
		if c.out[0].elem == elemFloat {
			for k, x := range v.f {
				v.f[k] = float64(float32(x))
			}
		}
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
