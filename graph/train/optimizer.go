package train

import (
	"errors"
	"fmt"
	"slices"

	"placer/graph"
	"placer/units"
)

// variable is a trainable variable with its gradient.
type variable struct {
	op     graph.OpID
	ref    graph.TensorID
	master graph.TensorID // its copy in f32, or absent
	grad   value
	scope  *scope // Phase Update, Layer, Group and Module of the variable
}

// update adds clipping, slots, updates and the train op that waits for them.
func (d *deriver) update() error {
	vars, err := d.variables()
	if err != nil {
		return err
	}
	if d.cfg.ClipGlobalNorm {
		d.clip(vars)
	}
	root := &scope{d: d, prefix: d.root[1] + "/", common: graph.Op{Phase: graph.Update, DType: d.b.At(vars[0].op).DType, Bytes: graph.Auto, Forward: graph.None}}
	type apply func(*scope, *variable) graph.OpID
	var do apply
	finish := func([]graph.OpID) []graph.OpID { return nil }
	switch d.cfg.Optimizer {
	case SGD:
		lr := root.constantAs("learning_rate", scalar(graph.F32))
		do = func(s *scope, v *variable) graph.OpID { return s.sgd(v, lr) }
	case Momentum:
		lr := root.constantAs("learning_rate", scalar(graph.F32))
		momentum := root.constantAs("momentum", scalar(graph.F32))
		do = func(s *scope, v *variable) graph.OpID { return s.momentum(v, lr, momentum) }
	case Adam:
		a := newAdam(root, vars[0])
		do = a.apply
		finish = func(done []graph.OpID) []graph.OpID { return a.finish(root, done) }
	}
	done := make([]graph.OpID, 0, len(vars)+2)
	for k := range vars {
		v := &vars[k]
		if d.cfg.MasterWeights && narrow(d.b.TensorAt(v.ref).DType) {
			v.scope.keepMaster(v)
		}
		done = append(done, do(v.scope, v))
	}
	done = append(done, finish(done)...)
	root.group("train_op", done)
	return nil
}

// group adds a NoOp that waits for ops.
func (s *scope) group(base string, ops []graph.OpID) {
	i := s.emit(base, "NoOp", nil)
	for _, o := range ops {
		s.d.b.Control(o, i)
	}
}

// variables returns the variables that have a gradient, ascending, and puts each
// and its reads into one group.
func (d *deriver) variables() ([]variable, error) {
	ids := make([]graph.OpID, 0, len(d.final))
	for i := range d.final {
		ids = append(ids, i)
	}
	if len(ids) == 0 {
		return nil, errors.New("no gradient reaches a trainable variable")
	}
	slices.Sort(ids)
	vars := make([]variable, 0, len(ids))
	for _, i := range ids {
		first, _ := d.fwd.Outputs(i)
		group, err := d.groupOf(i)
		if err != nil {
			return nil, err
		}
		o := d.b.At(i)
		vars = append(vars, variable{
			op: i, ref: first, master: absent, grad: d.final[i],
			scope: &scope{d: d, prefix: d.root[1] + "/update_" + o.Name + "/", common: graph.Op{
				Phase: graph.Update, DType: d.b.TensorAt(first).DType, Layer: o.Layer, Group: group, Module: o.Module, Bytes: graph.Auto, Forward: graph.None}},
		})
	}
	return vars, nil
}

// groupOf returns the group of variable i and its reads, after giving it to all
// of them.
func (d *deriver) groupOf(i graph.OpID) (int32, error) {
	first, _ := d.fwd.Outputs(i)
	members := []graph.OpID{i}
	for _, c := range d.fwd.Consumers(first) {
		if k := d.fwd.Op(c).Kind; k == "Identity" || k == "ReadVariableOp" {
			members = append(members, c)
		}
	}
	group := int32(0)
	for _, m := range members {
		switch o := d.b.At(m); {
		case o.Group == 0 || o.Group == group:
		case group == 0:
			group = o.Group
		default:
			return 0, fmt.Errorf("op %d (%s): is in group %d, the variable it reads, op %d (%s), in group %d", m, o.Name, o.Group, i, d.b.At(i).Name, group)
		}
	}
	if group == 0 {
		d.groups++
		group = d.groups
	}
	for _, m := range members {
		d.b.At(m).Group = group
	}
	return group, nil
}

// slot adds an optimizer slot of the variable's shape and its read, and returns
// the slot. It has the type of the master copy where there is one.
func (s *scope) slot(v *variable, base string) graph.TensorID {
	return s.variable(base, s.like(v.learned()))
}

// variable adds a variable that is not trained and its read.
func (s *scope) variable(base string, x graph.Tensor) graph.TensorID {
	x.Resident = true
	i := s.emit(base, s.d.variableKind, nil, x)
	y := s.d.b.Output(i, 0)
	s.d.b.At(i).Resident = s.d.bytes(y)
	s.emit(base+"/read", "Identity", []graph.TensorID{y}, x)
	return y
}

// apply adds an op that updates the variable or slot to in place, its first input. It
// moves words times the bytes of the gradient: one for each time a tensor of that size is
// read or written.
func (s *scope) apply(kind graph.Kind, words int, grad, to graph.TensorID, in ...graph.TensorID) graph.OpID {
	out := s.like(to)
	out.Resident = true
	i := s.emit(string(kind), kind, append([]graph.TensorID{to}, in...), out)
	o := s.d.b.At(i)
	f, _ := graph.FactsOf(kind)
	o.FLOPs = units.FLOPs(f.FLOPsPerElement) * flops(s.d.size(grad))
	o.Bytes = units.Bytes(words) * s.d.bytes(grad)
	return i
}

// sgd: var -= lr*g. Sparse: the rows are scaled and subtracted where they are.
func (s *scope) sgd(v *variable, lr graph.TensorID) graph.OpID {
	if g := v.grad; g.isSparse() {
		d := s.one("Mul", []graph.TensorID{g.rows, lr}, s.like(g.rows))
		return s.learn("ScatterSub", v, 3, d, g.indices, d)
	}
	return s.learn("ApplyGradientDescent", v, 3, v.grad.dense, lr, v.grad.dense)
}

// momentum: accum = momentum*accum + g, var -= lr*accum.
func (s *scope) momentum(v *variable, lr, momentum graph.TensorID) graph.OpID {
	accum := s.slot(v, "Momentum")
	if g := v.grad; g.isSparse() {
		rows, indices := s.deduplicate(g)
		return s.learn("SparseApplyMomentum", v, 5, rows, accum, lr, rows, indices, momentum)
	}
	return s.learn("ApplyMomentum", v, 5, v.grad.dense, accum, lr, v.grad.dense, momentum)
}

// deduplicate sums rows of equal index: Unique, Shape, StridedSlice,
// UnsortedSegmentSum. Costs count every row as distinct.
func (s *scope) deduplicate(g value) (rows, indices graph.TensorID) {
	u := s.emit("Unique", "Unique", []graph.TensorID{g.indices}, s.like(g.indices), s.like(g.indices))
	indices = s.d.b.Output(u, 0)
	n := s.stridedSlice(s.host("Shape", []graph.TensorID{indices}, ints(1)), ints(-1))
	return s.segmentSum(g.rows, s.d.b.Output(u, 1), n, s.like(g.rows)), indices
}

// clip replaces every gradient by its product with limit * min(1/norm, 1/limit):
// L2Loss of each, Pack, Sum, Mul, Sqrt, the scale, then Mul and Identity for
// each.
func (d *deriver) clip(vars []variable) {
	t := d.b.At(vars[0].op).DType
	s := &scope{d: d, prefix: d.root[1] + "/clip_by_global_norm/", common: graph.Op{Phase: graph.Update, DType: t, Bytes: graph.Auto, Forward: graph.None}}
	number := func() graph.TensorID { return s.constant(scalar(t)) }
	op := func(k graph.Kind, in ...graph.TensorID) graph.TensorID { return s.one(k, in, scalar(t)) }
	norms := make([]graph.TensorID, len(vars))
	for k := range vars {
		s.common.Layer, s.common.Module = vars[k].scope.common.Layer, vars[k].scope.common.Module
		norms[k] = op("L2Loss", *vars[k].grad.data())
	}
	s.common.Layer, s.common.Module = 0, ""
	stack := s.one("Pack", norms, graph.Tensor{DType: t, Shape: graph.Shape{int64(len(vars))}, Bytes: graph.Auto})
	norm := op("Sqrt", op("Mul", op("Sum", stack, s.axes(1)), number()))
	ratio := op("RealDiv", number(), norm)
	scale := op("Mul", number(), op("Minimum", ratio, op("RealDiv", number(), number())))
	for k := range vars {
		s.common.Layer, s.common.Module = vars[k].scope.common.Layer, vars[k].scope.common.Module
		g := vars[k].grad.data()
		x := s.one("Mul", []graph.TensorID{*g, scale}, s.like(*g))
		*g = s.one("Identity", []graph.TensorID{x}, s.like(x))
	}
}

// data returns the tensor that holds the elements of v.
func (v *value) data() *graph.TensorID {
	if v.isSparse() {
		return &v.rows
	}
	return &v.dense
}
