package train

import "placer/graph"

// adam holds what the updates of all variables share (Kingma & Ba,
// arXiv:1412.6980, Algorithm 1): constants and the powers of the decay rates,
// which TensorFlow keeps in two variables beside the first trained one.
type adam struct {
	lr, beta1, beta2, epsilon graph.TensorID
	power                     [2]graph.TensorID // refs
	read                      [2]graph.TensorID
}

func newAdam(root *scope, first variable) *adam {
	a := &adam{}
	with := *first.scope
	with.prefix, with.used = root.prefix, nil
	for k, base := range []string{"beta1_power", "beta2_power"} {
		a.power[k] = with.variable(base, scalar(graph.F32))
		a.read[k] = a.power[k] + 1
	}
	a.lr = root.constantAs("learning_rate", scalar(graph.F32))
	a.beta1 = root.constantAs("beta1", scalar(graph.F32))
	a.beta2 = root.constantAs("beta2", scalar(graph.F32))
	a.epsilon = root.constantAs("epsilon", scalar(graph.F32))
	return a
}

// apply updates v: one kernel for a dense gradient.
func (a *adam) apply(s *scope, v *variable) graph.OpID {
	m, n := s.slot(v, "Adam"), s.slot(v, "Adam_1")
	if v.grad.isSparse() {
		return a.applySparse(s, v, m, n)
	}
	g := v.grad.dense
	return s.learn("ApplyAdam", v, 7, g, m, n, a.read[0], a.read[1], a.lr, a.beta1, a.beta2, a.epsilon, g)
}

// applySparse is what TensorFlow does for rows: it sums those of equal index,
// but decays both slots and moves the variable as a whole.
func (a *adam) applySparse(s *scope, v *variable, m, n graph.TensorID) graph.OpID {
	rows, indices := s.deduplicate(v.grad)
	t := s.common.DType
	number := func(k graph.Kind, in ...graph.TensorID) graph.TensorID { return s.one(k, in, scalar(t)) }
	minus := func(x graph.TensorID) graph.TensorID { return number("Sub", s.constant(scalar(t)), x) }
	whole := func(k graph.Kind, in ...graph.TensorID) graph.TensorID { return s.one(k, in, s.like(v.learned())) }
	some := func(k graph.Kind, in ...graph.TensorID) graph.TensorID { return s.one(k, in, s.like(rows)) }
	rate := number("Mul", a.lr, number("Sqrt", minus(a.read[1])))
	rate = number("RealDiv", rate, minus(a.read[0]))
	decay := func(slot, beta, add graph.TensorID) graph.TensorID {
		assigned := s.assign(slot, whole("Mul", slot, beta))
		i := s.apply("ScatterAdd", 3, rows, assigned, indices, add)
		return s.d.b.Output(i, 0)
	}
	first := some("Mul", rows, minus(a.beta1))
	m = decay(m, a.beta1, first)
	second := some("Mul", some("Mul", rows, rows), minus(a.beta2))
	n = decay(n, a.beta2, second)
	step := whole("RealDiv", whole("Mul", rate, m), whole("Add", whole("Sqrt", n), a.epsilon))
	return s.learn("AssignSub", v, 3, step, step)
}

// assign stores x in the slot to.
func (s *scope) assign(to, x graph.TensorID) graph.TensorID {
	i := s.apply("Assign", 2, x, to, x)
	s.d.b.At(i).FLOPs = 0
	return s.d.b.Output(i, 0)
}

// finish multiplies the powers by the decay rates once all of done have read
// them.
func (a *adam) finish(root *scope, done []graph.OpID) []graph.OpID {
	b := root.d.b
	s := *root
	s.common.Group = b.At(b.TensorAt(a.power[0]).Producer).Group
	var out []graph.OpID
	for k, beta := range []graph.TensorID{a.beta1, a.beta2} {
		x := s.one("Mul", []graph.TensorID{a.read[k], beta}, scalar(graph.F32))
		for _, d := range done {
			b.Control(d, b.TensorAt(x).Producer)
		}
		r := scalar(graph.F32)
		r.Resident = true
		out = append(out, s.emit("Assign", "Assign", []graph.TensorID{a.power[k], x}, r))
	}
	root.used = s.used
	return out
}
