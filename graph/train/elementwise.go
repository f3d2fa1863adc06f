package train

import "placer/graph"

// broadcast gives the gradients of the two operands of a broadcasting op.
// product returns the gradient of operand k at the shape of the result; what it
// returns is summed over the axes along which the operand was repeated. after,
// where not nil, is applied to the sum. Shape, Shape_1, BroadcastGradientArgs,
// then for each operand its product, Sum, Reshape; for kinds of skipsEqual, with
// static and equal shapes, the products alone.
func (s *step) broadcast(product func(k int) graph.TensorID, after func(k int, sum graph.TensorID) graph.TensorID) {
	if after == nil {
		after = func(_ int, sum graph.TensorID) graph.TensorID { return sum }
	}
	if s.d.cfg.StaticShapes && skipsEqual[s.forward().Kind] && s.d.sameShape(s.in[0], s.in[1]) {
		for k := range s.in {
			if s.want(k) {
				s.give(k, after(k, product(k)))
			}
		}
		return
	}
	shapes, axes := s.broadcastAxes()
	for k := range s.in {
		if s.want(k) {
			sum := s.sum(product(k), axes[k], s.in[k])
			if k == 1 {
				sum = after(k, sum)
			}
			s.give(k, s.reshape(sum, shapes[k], s.in[k]))
		}
	}
}

// skipsEqual lists the kinds whose gradient functions look whether the shapes
// are known and equal.
var skipsEqual = map[graph.Kind]bool{"Add": true, "AddV2": true, "Sub": true, "Mul": true}

// broadcastAxes returns the shapes of the first two inputs and the axes over
// which their gradients are summed.
func (s *step) broadcastAxes() (shapes, axes [2]graph.TensorID) {
	shapes = [2]graph.TensorID{s.shape(s.in[0]), s.shape(s.in[1])}
	r := s.d.rank(s.y(0))
	first := s.host("BroadcastGradientArgs", shapes[:], ints(r), ints(r))
	return shapes, [2]graph.TensorID{first, first + 1}
}

// number returns a constant scalar of the op's type.
func (s *step) number() graph.TensorID {
	return s.constant(scalar(s.d.b.TensorAt(s.y(0)).DType))
}

func add(s *step) {
	g := s.grad(0)
	s.broadcast(func(int) graph.TensorID { return g }, nil)
}

func sub(s *step) {
	g := s.grad(0)
	s.broadcast(func(int) graph.TensorID { return g }, s.negateSecond)
}

// negateSecond turns the sign of the gradient of operand 1.
func (s *step) negateSecond(k int, sum graph.TensorID) graph.TensorID {
	if k == 0 {
		return sum
	}
	return s.unary("Neg", sum, s.in[1])
}

func mul(s *step) {
	g := s.grad(0)
	s.broadcast(func(k int) graph.TensorID { return s.binary("Mul", g, s.in[1-k], g) }, nil)
}

// div: g/y and g*(-x/y/y).
func div(s *step) {
	g := s.grad(0)
	s.broadcast(func(k int) graph.TensorID {
		x, y := s.in[0], s.in[1]
		if k == 0 {
			return s.binary("RealDiv", g, y, g)
		}
		q := s.binary("RealDiv", s.one("Neg", []graph.TensorID{x}, s.like(x)), y, g)
		return s.binary("Mul", g, s.binary("RealDiv", q, y, g), g)
	}, nil)
}

// maximum selects the gradient or zeros by comparing the operands.
func maximum(s *step) {
	g := s.grad(0)
	cmp := graph.Kind("GreaterEqual")
	if s.forward().Kind == "Minimum" {
		cmp = "LessEqual"
	}
	zeros := s.one("Fill", []graph.TensorID{s.shape(g), s.number()}, s.like(g))
	out := s.like(g)
	out.DType, out.Bytes = graph.Bool, asBool(s.d.size(g))
	mask := s.one(cmp, s.in, out)
	s.broadcast(func(k int) graph.TensorID {
		if k == 0 {
			return s.one("Select", []graph.TensorID{mask, g, zeros}, s.like(g))
		}
		return s.one("Select", []graph.TensorID{mask, zeros, g}, s.like(g))
	}, nil)
}

// pow: g*y*x^(y-1) and g*z*log(x) where x > 0.
func pow(s *step) {
	g := s.grad(0)
	s.broadcast(func(k int) graph.TensorID {
		x, y := s.in[0], s.in[1]
		if k == 0 {
			gy := s.binary("Mul", g, y, g)
			return s.binary("Mul", gy, s.binary("Pow", x, s.binary("Sub", y, s.number(), y), g), g)
		}
		positive := s.like(x)
		positive.DType, positive.Bytes = graph.Bool, asBool(s.d.size(x))
		mask := s.one("Greater", []graph.TensorID{x, s.number()}, positive)
		log := s.one("Log", []graph.TensorID{x}, s.like(x))
		zeros := s.one("ZerosLike", []graph.TensorID{x}, s.like(x))
		log = s.one("Select", []graph.TensorID{mask, log, zeros}, s.like(x))
		return s.binary("Mul", s.binary("Mul", g, s.y(0), g), log, g)
	}, nil)
}

// squaredDifference: 2g(x-y), and its negative.
func squaredDifference(s *step) {
	g := s.grad(0)
	twice := s.binary("Mul", s.number(), g, g)
	d := s.binary("Mul", twice, s.binary("Sub", s.in[0], s.in[1], g), g)
	s.broadcast(func(int) graph.TensorID { return d }, s.negateSecond)
}

func addN(s *step) {
	g := s.grad(0)
	for k := range s.in {
		s.give(k, g)
	}
}

func biasAdd(s *step) {
	g := s.grad(0)
	s.give(0, g)
	s.biasGrad(1, g)
}

// biasGrad gives input k, a bias, the sum of g over all but its channels.
func (s *step) biasGrad(k int, g graph.TensorID) {
	if s.want(k) {
		s.give(k, s.one("BiasAddGrad", []graph.TensorID{g}, s.like(s.in[k])))
	}
}

func neg(s *step) {
	g := s.grad(0)
	s.give(0, s.unary("Neg", g, g))
}

func cast(s *step) {
	s.give(0, s.one("Cast", []graph.TensorID{s.grad(0)}, s.like(s.in[0])))
}

// selectGrad passes the gradient to the operand that the condition chose.
func selectGrad(s *step) {
	g := s.grad(0)
	zeros := s.one("ZerosLike", []graph.TensorID{g}, s.like(g))
	for k := 1; k < 3; k++ {
		if !s.want(k) {
			continue
		}
		in := []graph.TensorID{s.in[0], g, zeros}
		if k == 2 {
			in[1], in[2] = zeros, g
		}
		v := s.one("Select", in, s.like(g))
		if !s.d.sameShape(g, s.in[k]) { // ONNX's Where broadcasts
			shapes := []graph.TensorID{s.shape(s.in[k]), s.shape(g)}
			r := s.d.rank(g)
			axes := s.host("BroadcastGradientArgs", shapes, ints(r), ints(r))
			v = s.reshape(s.sum(v, axes, s.in[k]), shapes[0], s.in[k])
		}
		s.give(k, v)
	}
}

// fromOutput is the one kernel <Kind>Grad(y, g) of a function whose derivative
// its result gives: it saves y and not x. TensorFlow spells ReluGrad(g, y).
func fromOutput(s *step) { s.saved(s.y(0)) }

// fromInput is the one kernel <Kind>Grad(g, x).
func fromInput(s *step) { s.saved(s.in[0]) }

func (s *step) saved(t graph.TensorID) {
	g := s.grad(0)
	s.give(0, s.binary(s.forward().Kind+"Grad", t, g, s.in[0]))
}

// scaled is the rule of an elementwise function: the gradient times what derivative
// adds, given that gradient.
func scaled(derivative func(s *step, g graph.TensorID) graph.TensorID) rule {
	return first(func(s *step) {
		g := s.grad(0)
		s.give(0, s.binary("Mul", g, derivative(s, g), g))
	})
}

// The derivatives of exp, log, the square, the absolute value, sin, cos and erf.

func result(s *step, _ graph.TensorID) graph.TensorID { return s.y(0) }

func reciprocal(s *step, _ graph.TensorID) graph.TensorID {
	return s.unary("Reciprocal", s.in[0], s.in[0])
}

func twice(s *step, g graph.TensorID) graph.TensorID {
	return s.binary("Mul", s.in[0], s.number(), g)
}

func sign(s *step, g graph.TensorID) graph.TensorID { return s.unary("Sign", s.in[0], g) }

func cosine(s *step, g graph.TensorID) graph.TensorID { return s.unary("Cos", s.in[0], g) }

func minusSine(s *step, g graph.TensorID) graph.TensorID {
	return s.unary("Neg", s.unary("Sin", s.in[0], g), g)
}

// bell is 2/sqrt(pi) * exp(-x^2).
func bell(s *step, g graph.TensorID) graph.TensorID {
	c := s.number()
	x := s.unary("Neg", s.unary("Square", s.in[0], g), g)
	return s.binary("Mul", c, s.unary("Exp", x, g), g)
}

// fill sums the gradient for the value, input 1.
func fill(s *step) {
	if s.want(1) {
		s.give(1, s.sum(s.grad(0), s.axes(s.d.rank(s.y(0))), s.in[1]))
	}
}

// dropout reads the mask where the forward op keeps one, else its output, whose
// zeros tell the mask.
func dropout(s *step) {
	g := s.grad(0)
	mask := s.y(0)
	if len(s.out) > 1 {
		mask = s.y(1)
	}
	s.give(0, s.one("DropoutGrad", []graph.TensorID{g, mask}, s.like(s.in[0])))
}
