package onnx

import "placer/graph"

var reduceRules = merge(
	map[string]rule{
		"ReduceSum": {"Sum", reduce}, "ReduceMean": {"Mean", reduce}, "ReduceMax": {"Max", reduce}, "ReduceMin": {"Min", reduce}, "ReduceProd": {"Prod", reduce},
		"com.microsoft.ReduceSumInteger": {"Sum", reduce}, "com.microsoft.ReduceSumTraining": {"Sum", reduce},
		"ArgMax": {"ArgMax", arg}, "ArgMin": {"ArgMin", arg}, "TopK": {"TopK", topK}, "Det": {"Det", det}, "CumSum": {"Cumsum", like},
	},
	map[string]rule{"com.microsoft.QLinearReduceMean": {"Mean", func(c *call) {
		s, list := c.shape(0), c.node.ints("axes")
		c.set(0, c.elem(0), reduced(s, c.axes(list, len(s)), len(list) == 0, c.node.int("keepdims", 1) != 0))
	}}},
	each(reduce, "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
	each(like, "Softmax", "LogSoftmax", "Hardmax", "CumProd", "com.microsoft.QLinearSoftmax"),
)

// reduce removes the axes named, or makes them 1; without axes all of them.
func reduce(c *call) {
	s := c.shape(0)
	if c.has(1) && c.in[1].elements() == 0 && c.in[1].shape != nil {
		c.in[1].value = intValue()
	}
	list := c.list(1, "axes")
	all := len(list) == 0
	if all && c.node.int("noop_with_empty_axes", 0) != 0 {
		c.set(0, c.elem(0), s)
		return
	}
	c.set(0, c.elem(0), reduced(s, c.axes(list, len(s)), all, c.node.int("keepdims", 1) != 0))
}

// reduced returns s without the axes marked, or with them 1.
func reduced(s graph.Shape, marked []bool, all, keep bool) graph.Shape {
	out := graph.Shape{}
	for k, d := range s {
		switch {
		case !all && !marked[k]:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

func arg(c *call) {
	s := c.ranked(0, 1, maxRank)
	marked := c.axes([]int64{c.node.int("axis", 0)}, len(s))
	c.set(0, elemInt64, reduced(s, marked, false, c.node.int("keepdims", 1) != 0))
}

// topK: values and indices.
func topK(c *call) {
	s := c.ranked(0, 1, maxRank)
	k := c.node.int("k", 0)
	if c.has(1) {
		k = c.scalar(1)
	}
	out := with(s, c.axis(c.node.int("axis", -1), len(s)), k)
	c.set(0, c.elem(0), out)
	c.set(1, elemInt64, out)
}

// det: the determinants of the matrices in the last two axes.
func det(c *call) {
	s := c.ranked(0, 2, maxRank)
	c.set(0, c.elem(0), s[:len(s)-2])
	n := float64(s[len(s)-1])
	c.flops = flops(2. / 3 * n * elementsOf(s)) // by LU
}
