package hlo

import (
	"math"
	"strings"

	"placer/graph"
	"placer/units"
)

// kinds are the graph's names of opcodes where the meaning is the same.
func kinds() map[string]graph.Kind {
	return map[string]graph.Kind{
		"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "RealDiv", "remainder": "FloorMod", "maximum": "Maximum", "minimum": "Minimum",
		"negate": "Neg", "abs": "Abs", "sign": "Sign", "floor": "Floor", "ceil": "Ceil", "round-nearest-afz": "Round", "round-nearest-even": "Round", "clamp": "ClipByValue",
		"and": "LogicalAnd", "or": "LogicalOr", "not": "LogicalNot", "xor": "LogicalXor", "shift-left": "BitShift", "shift-right-logical": "BitShift", "shift-right-arithmetic": "BitShift",
		"compare": "Equal", "select": "Select", "convert": "Cast", "is-finite": "IsInf", "real": "Cast", "imag": "Cast", "complex": "Cast", "conj": "Neg", "popcnt": "BitwiseNot", "count-leading-zeros": "BitwiseNot", "iota": "Fill", "reduce-precision": "Cast", "stochastic-convert": "Cast",
		"exponential": "Exp", "exponential-minus-one": "Exp", "log": "Log", "log-plus-one": "Log", "logistic": "Sigmoid", "tanh": "Tanh", "erf": "Erf", "power": "Pow", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "cbrt": "Pow",
		"sine": "Sin", "cosine": "Cos", "tan": "Tan", "atan2": "Atan", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "sinh": "Sinh", "cosh": "Cosh", "square": "Square",
		"erfc": "Erf", "erf-inv": "Erf", "lgamma": "Erf", "digamma": "Erf", "polygamma": "Erf", "zeta": "Erf", "bessel-i1e": "Erf", "next-after": "Sign", "is-inf": "IsInf", "is-pos-inf": "IsInf", "is-neg-inf": "IsInf",
		"rng": "RandomUniform", "rng-bit-generator": "RandomUniform",
		"dot": "MatMul", "cholesky": "MatMul", "triangular-solve": "MatMul", "ragged-dot": "GroupedMatMul", "convolution": "Conv2D", "reduce": "Sum", "reduce-window": "AvgPool", "select-and-scatter": "MaxPoolGrad", "sort": "TopK", "topk": "TopK",
		"reshape": "Reshape", "bitcast": "Reshape", "bitcast-convert": "Reshape", "opt-barrier": "Identity", "get-dimension-size": "Size", "after-all": "NoOp", "add-dependency": "Identity",
		"broadcast": "BroadcastTo", "transpose": "Transpose", "copy": "Transpose", "slice": "Slice", "dynamic-slice": "Slice", "dynamic-update-slice": "StridedSliceGrad", "concatenate": "ConcatV2", "pad": "Pad", "reverse": "ReverseV2",
		"gather": "GatherV2", "scatter": "ScatterAdd", "constant": "Const", "global": "VariableV2",
	}
}

// cost is what a computation, or an instruction, takes.
type cost struct {
	flops   units.FLOPs // products and all
	product graph.GEMM  // that with the most arithmetic in all its repetitions
	dtype   graph.DType // of that product's operands
	repeats float64     // of that product, by loops; of the longest loop where there is no product
	in      units.FLOPs // of products
	kernels float64     // launched where all is fused that compilers fuse
	bytes   float64
	live    units.Bytes // the largest results of one instruction, but for what is written in place
}

// add adds times executions of x, one after another.
func (c *cost) add(x cost, times float64) {
	c.flops += x.flops * units.FLOPs(times)
	c.in += x.in * units.FLOPs(times)
	c.kernels += x.kernels * times
	c.bytes += x.bytes * times
	c.live = max(c.live, x.live)
	repeats := max(x.repeats, 1) * times
	switch most := c.product.FLOPs() * units.FLOPs(c.repeats); {
	case x.product.FLOPs()*units.FLOPs(repeats) > most:
		c.product, c.dtype, c.repeats = x.product, x.dtype, repeats
	case c.product.IsZero():
		c.repeats = max(c.repeats, repeats)
	}
}

// iterations returns how many iterations c runs one after another, and the kernels of each:
// 0 where it has no loops.
func (c *cost) iterations() (repeats, kernels int64) {
	if !(c.repeats > 1) {
		return 0, 0
	}
	repeats = int64(min(c.repeats, graph.MaxRepeats))
	return repeats, int64(min(math.Ceil(c.kernels/c.repeats), float64(graph.MaxRepeats/repeats)))
}

// gemm is the product that all products of one iteration of c amount to: the largest, as
// often as its operations go into those of all. Where they do not go evenly, the dimension
// grows among the batch, the rows and the columns that comes nearest: what rounding left
// out would be arithmetic outside of products, which is many times as slow.
func (c *cost) gemm() graph.GEMM {
	g := c.product
	one := g.FLOPs() * units.FLOPs(max(c.repeats, 1))
	if !(one > 0) || c.in <= one {
		return g
	}
	ratio := float64(c.in / one)
	best, least := g, math.Inf(1)
	for _, grow := range []func(*graph.GEMM) *int64{
		func(g *graph.GEMM) *int64 { return &g.Batch },
		func(g *graph.GEMM) *int64 { return &g.M },
		func(g *graph.GEMM) *int64 { return &g.N },
	} {
		x := g
		d := grow(&x)
		n := math.Round(float64(*d) * ratio)
		if !(n < 1<<62) {
			continue
		}
		*d = int64(n)
		if off := math.Abs(float64(x.FLOPs()*units.FLOPs(max(c.repeats, 1))/c.in) - 1); off < least-1e-12 {
			best, least = x, off
		}
	}
	return best
}

// own is the cost of an instruction that calls no computation of weight.
func (x *instruction) own(kind graph.Kind) (c cost) {
	facts, _ := graph.FactsOf(kind)
	out := x.shape.bytes()
	c.live = x.made()
	if kind.Leads() {
		c.kernels = 1
	}
	switch x.opcode {
	case "dot":
		c.product = x.dot()
	case "ragged-dot":
		c.product = x.ragged()
	case "cholesky", "triangular-solve":
		c.product = x.factorization()
	case "convolution":
		c.product = x.convolution()
	case "custom-call":
		if c.product = x.library(); !c.product.IsZero() {
			out -= x.workspace()
		}
	}
	if !c.product.IsZero() {
		if x.operands[0].shape.elem.pair() { // as of reals: parts beside each other, 8 operations for 2
			c.product.K, c.product.N = 2*c.product.K, 2*c.product.N
		}
		c.dtype = x.factors()
		c.in = c.product.FLOPs()
		c.flops = c.in
	} else if x.opcode == "fft" {
		c.flops = x.fourier()
	} else if facts.FLOPsPerElement > 0 && !x.moves() {
		n := x.shape.elements()
		for _, from := range x.operands {
			n = max(n, from.shape.elements())
		}
		c.flops = units.FLOPs(facts.FLOPsPerElement * float64(n) * x.parts())
	}
	c.bytes = float64(x.traffic(facts.Class, out))
	return c
}

// parts is how many operations of reals one of x's amounts to: of complex numbers a product six,
// any other, with one for each part, two.
func (x *instruction) parts() float64 {
	a := x.shape.first()
	if len(x.operands) > 0 && !x.operands[0].shape.is {
		a = &x.operands[0].shape
	}
	switch {
	case a == nil || !a.elem.pair():
		return 1
	case x.opcode == "multiply" || x.opcode == "divide":
		return 6
	}
	return 2
}

// fourier is the arithmetic of a fast Fourier transform: 5 n log2 n for n complex elements, and
// half of it where one side is real (Cooley and Tukey's radix 2, as benchmarks of FFTs count).
func (x *instruction) fourier() units.FLOPs {
	if len(x.operands) == 0 || x.operands[0].shape.is || x.shape.is {
		return 0
	}
	in, out := &x.operands[0].shape, &x.shape
	n := float64(max(in.elements(), out.elements()))
	points := 1.0
	for _, d := range x.attr.lengths {
		points *= float64(max(d, 1))
	}
	if in.elem.dtype != out.elem.dtype || in.elem.bits != out.elem.bits {
		n /= 2
	}
	return units.FLOPs(5 * n * math.Log2(points))
}

// factors is the type that a product multiplies in: the wider of its two operands'. What
// it adds up in, and gives, is often wider: dot(bf16,bf16) may be f32, dot(s8,s8) s32.
func (x *instruction) factors() graph.DType {
	a := x.operands[0].shape.elem
	if len(x.operands) > 1 {
		if b := x.operands[1].shape.elem; b.bits > a.bits {
			a = b
		}
	}
	return a.dtype
}

// moves reports whether x only moves data, or is a collective or call whose arithmetic
// is not known.
func (x *instruction) moves() bool {
	switch x.opcode {
	case "custom-call", "all-gather", "all-to-all", "collective-permute", "partition-id", "replica-id", "infeed", "outfeed", "send", "recv", "rng-get-and-update-state":
		return true
	}
	return strings.HasSuffix(x.opcode, "-done") || strings.HasSuffix(x.opcode, "-start")
}

// dot returns the product that a dot amounts to.
func (x *instruction) dot() graph.GEMM {
	if len(x.operands) < 2 || x.operands[0].shape.is {
		return graph.GEMM{}
	}
	lhs := x.operands[0].shape.dims
	contracting := x.attr.contracting
	if len(contracting) == 0 && len(lhs) > 0 && len(x.attr.batch) == 0 {
		contracting = []int64{int64(len(lhs)) - 1}
	}
	return multiply(lhs, contracting, x.attr.batch, x.shape.elements())
}

// multiply returns the product of an array of dimensions lhs by another into one of out
// elements, which sums over the dimensions contracting.
func multiply(lhs, contracting, batch []int64, out int64) graph.GEMM {
	g := graph.GEMM{Batch: 1, M: 1, K: 1}
	for i, d := range lhs {
		switch {
		case has(contracting, i):
			g.K *= d
		case has(batch, i):
			g.Batch *= d
		default:
			g.M *= d
		}
	}
	if g.Batch*g.M == 0 || g.K == 0 {
		return graph.GEMM{}
	}
	g.N = out / (g.Batch * g.M)
	if g.N < 1 {
		return graph.GEMM{}
	}
	return g
}

func has(list []int64, i int) bool {
	for _, x := range list {
		if x == int64(i) {
			return true
		}
	}
	return false
}

// convolution returns the implicit product: each element of the output is a sum over
// the kernel of one output feature.
func (x *instruction) convolution() graph.GEMM {
	if len(x.operands) < 2 || x.operands[1].shape.is {
		return graph.GEMM{}
	}
	return x.convolve(&x.operands[1].shape, &x.shape)
}

// convolve returns the implicit product of a convolution with that kernel into out. Where
// zeros are put between the elements of its input, as in a transposed convolution, each
// element of the output meets so much less of the kernel.
func (x *instruction) convolve(kernel, out *shape) graph.GEMM {
	at := x.attr.output - 1
	if at < 0 || at >= len(kernel.dims) || kernel.dims[at] < 1 {
		return graph.GEMM{}
	}
	features := kernel.dims[at]
	g := graph.GEMM{Batch: max(x.attr.groups, 1), K: kernel.elements() / features}
	if features%g.Batch != 0 {
		g.Batch = 1
	}
	g.N = features / g.Batch
	if x.attr.spread > 1 {
		g.K = max(int64(math.Round(float64(g.K)/float64(x.attr.spread))), 1)
	}
	g.M = out.elements() / features
	if g.M < 1 || g.K < 1 {
		return graph.GEMM{}
	}
	return g
}
