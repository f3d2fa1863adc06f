package train_test

import (
	"fmt"
	"math"
	"slices"

	"placer/graph"
)

// array is a row-major array; integers are held as floats.
type array struct {
	shape graph.Shape
	v     []float64
}

func size(s graph.Shape) int {
	n := 1
	for _, d := range s {
		n *= int(d)
	}
	return n
}

func zeros(s graph.Shape) array { return array{s, make([]float64, size(s))} }

// machine computes the tensors of a graph, whose ops have no attributes: axes
// are the last for concatenations and splits and the first for packing and
// gathering, a product is transposed as its place in the gradient says, sums and
// tiles align shapes at the last dimension.
type machine struct {
	g      *graph.Graph
	static bool                 // derived with StaticShapes
	given  map[graph.OpID]array // variables and placeholders
	t      map[graph.TensorID]array
}

// run computes every op up to the updates, which it skips.
func (m *machine) run(ops int) {
	m.t = map[graph.TensorID]array{}
	for i := graph.OpID(0); int(i) < ops; i++ {
		o := m.g.Op(i)
		if o.Phase == graph.Update && o.Kind.Class() == graph.ClassUpdate || o.Kind == "ScatterSub" {
			continue
		}
		first, end := m.g.Outputs(i)
		if x, ok := m.given[i]; ok {
			m.t[first] = x
			continue
		}
		var in []array
		for _, t := range m.g.Inputs(i) {
			x, ok := m.t[t]
			if !ok {
				panic(fmt.Sprintf("op %s reads what was not computed", o.Name))
			}
			in = append(in, x)
		}
		var outs []graph.Shape
		for t := first; t < end; t++ {
			outs = append(outs, m.g.Tensor(t).Shape)
		}
		if len(outs) == 0 {
			continue
		}
		for k, x := range m.eval(i, o, in, outs) {
			if len(x.v) != size(outs[k]) {
				panic(fmt.Sprintf("op %s: output %d has %d elements, is declared %v", o.Name, k, len(x.v), outs[k]))
			}
			m.t[first+graph.TensorID(k)] = array{outs[k], x.v}
		}
	}
}

func (m *machine) eval(i graph.OpID, o *graph.Op, in []array, outs []graph.Shape) []array {
	out := outs[0]
	one := func(x array) []array { return []array{x} }
	if f, ok := binaries[o.Kind]; ok {
		return one(broadcasted(out, in[0], in[1], f))
	}
	if f, ok := unaries[o.Kind]; ok {
		return one(broadcasted(out, in[0], in[0], func(x, _ float64) float64 { return f(x) }))
	}
	switch o.Kind {
	case "Identity", "PreventGradient", "Reshape", "ExpandDims", "Squeeze", "Cast":
		return in[:1]
	case "Const":
		x := zeros(out)
		for k := range x.v {
			x.v[k] = m.constant(o)
		}
		return one(x)
	case "Shape", "ShapeN":
		var xs []array
		for k := range outs {
			x := zeros(outs[k])
			for d := range x.v {
				x.v[d] = float64(in[k].shape[d])
			}
			xs = append(xs, x)
		}
		return xs
	case "BroadcastGradientArgs", "InvertPermutation", "Size", "StridedSlice", "DynamicStitch":
		var xs []array
		for k := range outs {
			xs = append(xs, zeros(outs[k])) // machine aligns shapes itself
		}
		return xs
	case "Range":
		x := zeros(out)
		for k := range x.v {
			x.v[k] = float64(k)
		}
		return one(x)
	case "Prod":
		p := 1.0
		for _, x := range in[0].v {
			p *= x
		}
		return one(array{out, []float64{p}})
	case "ConcatOffset": // constant shapes have no values here, so it asks the inputs
		var xs []array
		var parts []graph.Shape
		for _, t := range m.g.Inputs(o.Forward) {
			if m.g.Tensor(t).DType == graph.F32 {
				parts = append(parts, m.g.Tensor(t).Shape)
			}
		}
		at := 0.0
		for k := range outs {
			x := zeros(outs[k])
			x.v[len(x.v)-1] = at
			at += float64(parts[k][len(x.v)-1])
			xs = append(xs, x)
		}
		return xs
	case "MatMul":
		return one(m.product(i, in[0], in[1], out))
	case "AddN":
		x := zeros(out)
		for _, a := range in {
			for k := range x.v {
				x.v[k] += a.v[k]
			}
		}
		return one(x)
	case "Sum":
		return one(reduceTo(out, in[0]))
	case "Mean":
		x := reduceTo(out, in[0])
		for k := range x.v {
			x.v[k] *= float64(len(x.v)) / float64(len(in[0].v))
		}
		return one(x)
	case "BiasAddGrad":
		return one(reduceTo(out, in[0]))
	case "Tile", "Fill":
		src := in[0]
		if o.Kind == "Fill" {
			src = in[1]
		}
		return one(broadcasted(out, zeros(out), src, func(_, x float64) float64 { return x }))
	case "ZerosLike":
		return one(zeros(out))
	case "Select":
		x := zeros(out)
		for k := range x.v {
			x.v[k] = in[2].v[k]
			if in[0].v[k] != 0 {
				x.v[k] = in[1].v[k]
			}
		}
		return one(x)
	case "Transpose":
		r, c := int(in[0].shape[0]), int(in[0].shape[1])
		x := zeros(out)
		for a := range r {
			for b := range c {
				x.v[b*r+a] = in[0].v[a*c+b]
			}
		}
		return one(x)
	case "ConcatV2":
		return one(joinLast(out, in))
	case "Split":
		return cutLast(in[len(in)-1], outs)
	case "Slice":
		from := int(in[1].v[len(in[1].v)-1])
		return one(columns(in[0], from, out))
	case "Pack":
		x := array{out, nil}
		for _, a := range in {
			x.v = append(x.v, a.v...)
		}
		return one(x)
	case "Unpack":
		var xs []array
		at := 0
		for _, s := range outs {
			xs = append(xs, array{s, in[0].v[at : at+size(s)]})
			at += size(s)
		}
		return xs
	case "GatherV2":
		x := array{out, nil}
		row := len(in[0].v) / int(in[0].shape[0])
		for _, at := range in[1].v {
			x.v = append(x.v, in[0].v[int(at)*row:(int(at)+1)*row]...)
		}
		return one(x)
	case "UnsortedSegmentSum":
		x := zeros(out)
		row := len(x.v) / int(out[0])
		for k, v := range in[0].v {
			x.v[int(in[1].v[k/row])*row+k%row] += v
		}
		return one(x)
	case "Max":
		x := zeros(out)
		for k := range x.v {
			x.v[k] = math.Inf(-1)
		}
		for k, v := range in[0].v {
			x.v[at(k, in[0].shape, out)] = max(v, x.v[at(k, in[0].shape, out)])
		}
		return one(x)
	case "Softmax":
		return one(softmaxOf(in[0]))
	case "SparseSoftmaxCrossEntropyWithLogits":
		p := softmaxOf(in[0])
		loss, c := zeros(out), int(p.shape[1])
		for r := range loss.v {
			k := r*c + int(in[1].v[r])
			loss.v[r] = -math.Log(p.v[k])
			p.v[k]--
		}
		return []array{loss, p}
	}
	panic(fmt.Sprintf("the test computes no %s (%s)", o.Kind, o.Name))
}

// constant is the value of a Const, which the graph does not keep: what the
// derivative of the op it serves has there.
func (m *machine) constant(o *graph.Op) float64 {
	if o.Phase != graph.Backward {
		return 1
	}
	f := m.g.Op(o.Forward)
	switch f.Kind {
	case "Square", "SquaredDifference":
		if o.DType == graph.F32 {
			return 2
		}
	case "Erf":
		return 2 / math.Sqrt(math.Pi)
	case "Maximum", "Minimum":
		if o.DType == graph.F32 {
			return 0
		}
	case "Mean":
		if x := m.g.Inputs(o.Forward)[0]; m.static && o.DType == graph.I32 {
			y, _ := m.g.Outputs(o.Forward)
			return float64(size(m.g.Tensor(x).Shape) / size(m.g.Tensor(y).Shape))
		}
	}
	return 1
}

// product multiplies matrices; a gradient has its forward operand transposed. It
// panics unless the op's dimensions are those of its operands.
func (m *machine) product(i graph.OpID, a, b array, out graph.Shape) array {
	o := m.g.Op(i)
	if o.Phase == graph.Backward {
		f := m.g.Inputs(o.Forward)
		if m.g.Inputs(i)[1] == f[1] {
			b = m.eval(i, &graph.Op{Kind: "Transpose"}, []array{b}, []graph.Shape{{b.shape[1], b.shape[0]}})[0]
		} else {
			a = m.eval(i, &graph.Op{Kind: "Transpose"}, []array{a}, []graph.Shape{{a.shape[1], a.shape[0]}})[0]
		}
	}
	if want := (graph.GEMM{Batch: 1, M: a.shape[0], N: b.shape[1], K: a.shape[1]}); o.GEMM != want || a.shape[1] != b.shape[0] || o.FLOPs != want.FLOPs() {
		panic(fmt.Sprintf("op %s: product %v of %v x %v, %g FLOPs", o.Name, o.GEMM, a.shape, b.shape, float64(o.FLOPs)))
	}
	x := zeros(out)
	M, N, K := int(a.shape[0]), int(b.shape[1]), int(a.shape[1])
	for r := range M {
		for c := range N {
			for k := range K {
				x.v[r*N+c] += a.v[r*K+k] * b.v[k*N+c]
			}
		}
	}
	return x
}

var binaries = map[graph.Kind]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b }, "BiasAdd": func(a, b float64) float64 { return a + b },
	"Sub": func(a, b float64) float64 { return a - b }, "Mul": func(a, b float64) float64 { return a * b },
	"RealDiv": func(a, b float64) float64 { return a / b }, "Pow": math.Pow,
	"Maximum": math.Max, "Minimum": math.Min,
	"FloorDiv":          func(a, b float64) float64 { return math.Floor(a / b) },
	"FloorMod":          func(a, b float64) float64 { return a },
	"SquaredDifference": func(a, b float64) float64 { return (a - b) * (a - b) },
	"Equal":             func(a, b float64) float64 { return truth(a == b) },
	"GreaterEqual":      func(a, b float64) float64 { return truth(a >= b) },
	"LessEqual":         func(a, b float64) float64 { return truth(a <= b) },
	"Greater":           func(a, b float64) float64 { return truth(a > b-1) }, // against Pow's constant, zero
	"TanhGrad":          func(y, g float64) float64 { return g * (1 - y*y) },
	"SigmoidGrad":       func(y, g float64) float64 { return g * y * (1 - y) },
	"ReluGrad":          func(y, g float64) float64 { return g * truth(y > 0) },
	"SqrtGrad":          func(y, g float64) float64 { return g / 2 / y },
	"RsqrtGrad":         func(y, g float64) float64 { return -g / 2 * y * y * y },
	"ReciprocalGrad":    func(y, g float64) float64 { return -g * y * y },
	"SoftplusGrad":      func(x, g float64) float64 { return g / (1 + math.Exp(-x)) },
}

var unaries = map[graph.Kind]func(float64) float64{
	"Neg": func(x float64) float64 { return -x }, "Exp": math.Exp, "Log": math.Log, "Tanh": math.Tanh,
	"Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"Relu":    func(x float64) float64 { return math.Max(x, 0) },
	"Square":  func(x float64) float64 { return x * x }, "Sqrt": math.Sqrt,
	"Rsqrt":      func(x float64) float64 { return 1 / math.Sqrt(x) },
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Abs":        math.Abs, "Sign": func(x float64) float64 { return 2*truth(x > 0) - 1 },
	"Sin": math.Sin, "Cos": math.Cos, "Erf": math.Erf,
	"Softplus": func(x float64) float64 { return math.Log1p(math.Exp(x)) },
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// at returns the index into an array of shape s, aligned at the last dimension
// and repeated where s has 1, of element k of shape out.
func at(k int, out, s graph.Shape) int {
	index, stride := 0, 1
	for d := len(out) - 1; d >= 0; d-- {
		x := k % int(out[d])
		k /= int(out[d])
		if e := d - len(out) + len(s); e >= 0 {
			if s[e] > 1 {
				index += x * stride
			}
			stride *= int(s[e])
		}
	}
	return index
}

func broadcasted(out graph.Shape, a, b array, f func(a, b float64) float64) array {
	x := zeros(out)
	for k := range x.v {
		x.v[k] = f(a.v[at(k, out, a.shape)], b.v[at(k, out, b.shape)])
	}
	return x
}

// reduceTo sums a to shape out.
func reduceTo(out graph.Shape, a array) array {
	x := zeros(out)
	for k, v := range a.v {
		x.v[at(k, a.shape, out)] += v
	}
	return x
}

// columns cuts the columns from..from+width off x.
func columns(x array, from int, out graph.Shape) array {
	width, all := int(out[len(out)-1]), int(x.shape[len(x.shape)-1])
	y := array{out, nil}
	for r := 0; r < len(x.v); r += all {
		y.v = append(y.v, x.v[r+from:r+from+width]...)
	}
	return y
}

func cutLast(x array, outs []graph.Shape) []array {
	var ys []array
	from := 0
	for _, s := range outs {
		ys = append(ys, columns(x, from, s))
		from += int(s[len(s)-1])
	}
	return ys
}

// joinLast concatenates what has the rank of out: along the last dimension, or
// the first where that alone fits.
func joinLast(out graph.Shape, in []array) array {
	in = slices.DeleteFunc(slices.Clone(in), func(a array) bool { return len(a.shape) != len(out) })
	x := array{out, nil}
	if in[0].shape[len(out)-1] == out[len(out)-1] || len(out) == 1 {
		for _, a := range in {
			x.v = append(x.v, a.v...)
		}
		return x
	}
	for r := range size(out[:len(out)-1]) {
		for _, a := range in {
			w := int(a.shape[len(a.shape)-1])
			x.v = append(x.v, a.v[r*w:(r+1)*w]...)
		}
	}
	return x
}

func softmaxOf(x array) array {
	y, c := zeros(x.shape), int(x.shape[len(x.shape)-1])
	for r := 0; r < len(x.v); r += c {
		total := 0.0
		for k := r; k < r+c; k++ {
			y.v[k] = math.Exp(x.v[k])
			total += y.v[k]
		}
		for k := r; k < r+c; k++ {
			y.v[k] /= total
		}
	}
	return y
}
