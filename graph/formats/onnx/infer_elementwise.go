package onnx

import "placer/graph"

var elementwiseRules = merge(
	map[string]rule{
		"Add": {"AddV2", elementwise}, "Sub": {"Sub", elementwise}, "Mul": {"Mul", elementwise}, "Div": {"Div", elementwise},
		"Sum": {"AddN", sum}, "Max": {"Maximum", elementwise}, "Min": {"Minimum", elementwise}, "Mean": {"ElementwiseMean", elementwise},
		"And": {"LogicalAnd", compare}, "Or": {"LogicalOr", compare}, "Xor": {"LogicalXor", compare}, "Not": {"LogicalNot", compare},
		"Equal": {"Equal", compare}, "Greater": {"Greater", compare}, "Less": {"Less", compare}, "GreaterOrEqual": {"GreaterEqual", compare}, "LessOrEqual": {"LessEqual", compare},
		"IsNaN": {"IsNaN", compare}, "IsInf": {"IsInf", compare},
		"Where": {"Where", where}, "Cast": {"Cast", cast}, "CastLike": {"Cast", castLike}, "BitCast": {"Cast", cast},
		"SwiGLU": {"SwiGLU", like}, "Dropout": {"Dropout", dropout}, "com.microsoft.BiasDropout": {"BiasDropout", dropout},
		"Swish": {"Swish", like}, "com.microsoft.QuickGelu": {"QuickGelu", like}, "com.microsoft.Gelu": {"Gelu", like},
		"com.microsoft.FastGelu": {"FastGelu", like}, "com.microsoft.BiasGelu": {"BiasGelu", elementwise},
		"com.microsoft.QLinearAdd": {"QLinearAdd", qlinearBinary}, "com.microsoft.QLinearMul": {"QLinearMul", qlinearBinary},
		"com.microsoft.QLinearSigmoid": {"QLinearSigmoid", like}, "com.microsoft.QLinearLeakyRelu": {"QLinearLeakyRelu", like},
		"com.microsoft.QLinearWhere": {"Where", func(c *call) { c.set(0, c.elem(1), c.broadcast(c.shape(0), c.shape(1), c.shape(4))) }},
		"com.microsoft.BiasSoftmax":  {"Softmax", like}, "com.microsoft.BiasAdd": {"AddN", like}, "com.microsoft.BiasSplitGelu": {"BiasGelu", biasSplitGelu},
		"SequenceAt": {"SequenceAt", noSequences}, "SequenceConstruct": {"SequenceConstruct", noSequences}, "SplitToSequence": {"SplitToSequence", noSequences},
		"SequenceEmpty": {"SequenceEmpty", noSequences}, "SequenceInsert": {"SequenceInsert", noSequences}, "SequenceErase": {"SequenceErase", noSequences},
		"SequenceLength": {"SequenceLength", noSequences}, "ConcatFromSequence": {"ConcatFromSequence", noSequences}, "SequenceMap": {"SequenceMap", noSequences},
	},
	each(elementwise, "Pow", "Mod", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
	each(like, "Identity", "PRelu", "Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Celu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Mish", "Tanh", "Softplus", "Softsign", "ThresholdedRelu",
		"Shrink", "Gelu", "Erf", "Exp", "Log", "Sqrt", "Reciprocal", "Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan",
		"Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "BitwiseNot", "Trilu", "com.microsoft.Trilu", "com.microsoft.Rsqrt", "Affine", "Scale", "ImageScaler", "ParametricSoftplus", "ScaledTanh"),
)

// elementwise: all inputs are broadcast to one shape; the type is the first's.
func elementwise(c *call) {
	if c.node.int("broadcast", 0) != 0 && c.has(1) { // operator sets before 7: the second fits into the first
		c.set(0, c.elem(0), c.shape(0))
		return
	}
	c.set(0, c.elem(0), c.broadcast(c.shapes()...))
}

// shapes returns the shapes of all inputs.
func (c *call) shapes() []graph.Shape {
	list := make([]graph.Shape, 0, len(c.in))
	for i := range c.in {
		if c.has(i) {
			list = append(list, c.shape(i))
		}
	}
	if len(list) == 0 {
		c.fail("has no inputs")
	}
	return list
}

// sum: the sum of all inputs; of two it is an addition.
func sum(c *call) {
	elementwise(c)
	if len(c.in) == 2 {
		c.kind = "AddV2"
	}
}

// compare: as elementwise, but the result is boolean.
func compare(c *call) {
	elementwise(c)
	c.set(0, elemBool, c.shapeOut())
}

// shapeOut returns the shape just given to output 0.
func (c *call) shapeOut() graph.Shape {
	if len(c.out) == 0 {
		return graph.Shape{}
	}
	return c.out[0].shape
}

func where(c *call) { c.set(0, c.elem(1), c.broadcast(c.shape(0), c.shape(1), c.shape(2))) }

func cast(c *call) {
	to := elem(c.node.int("to", 0))
	for e := range elems { // operator sets before 6 give the type's name
		if s := c.node.string("to", ""); s != "" && (elems[e].name == s || elems[e].name == lower(s)) {
			to = elem(e)
		}
	}
	if to != elemString && !to.known() {
		c.fail("cast to %v", to)
	}
	c.set(0, to, c.shape(0))
}

func lower(s string) string {
	b := []byte(s)
	for i, x := range b {
		if x >= 'A' && x <= 'Z' {
			b[i] = x + 'a' - 'A'
		}
	}
	return string(b)
}

func castLike(c *call) { c.set(0, c.elem(1), c.shape(0)) }

// dropout: output and mask. Outside of training the output is the input; the mask, of
// ones, is made where something reads it.
func dropout(c *call) {
	c.set(0, c.elem(0), c.shape(0))
	c.set(1, elemBool, c.shape(0))
	if masked := len(c.node.out) > 1 && len(c.imp.readers[c.node.out[1]]) > 0; !masked && !c.drops() {
		c.kind = "Identity"
	}
}

// drops reports whether a Dropout may leave out elements: in a training step, where its
// input training_mode does not say false (it may be absent, and is before operator set
// 12), or where before operator set 7 is_test does not say that it tests.
func (c *call) drops() bool {
	if c.imp.cfg.Training || c.opset() < 7 && c.node.int("is_test", 0) == 0 {
		return true
	}
	if !c.has(2) {
		return false
	}
	mode, ok := c.known(2)
	return !ok || len(mode) != 1 || mode[0] != 0
}

func qlinearBinary(c *call) { c.set(0, c.elem(0), c.broadcast(c.shape(0), c.shape(3))) }

// biasSplitGelu adds a bias, and multiplies one half of the last dimension by an activation
// of the other.
func biasSplitGelu(c *call) {
	s := c.ranked(0, 1, maxRank)
	c.set(0, c.elem(0), with(s, len(s)-1, s[len(s)-1]/2))
}

func noSequences(c *call) { c.fail("sequences of tensors are not supported") }
