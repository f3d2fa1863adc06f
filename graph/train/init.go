package train

import "placer/graph"

// initialize adds what sets every variable before the first step: for trained
// matrices the seven ops of a uniform distribution, for anything else a
// constant, and an Assign each. All cost nothing and hold nothing in the step.
func (d *deriver) initialize() {
	n := graph.OpID(d.b.NumOps())
	for i := graph.OpID(0); i < n; i++ {
		o := d.b.At(i)
		first, end := d.b.OutputsAt(i)
		if o.Kind.Class() != graph.ClassVariable || first == end {
			continue
		}
		s := &scope{d: d, prefix: d.root[2] + "/" + o.Name + "/", common: graph.Op{
			Phase: graph.Update, DType: o.DType, Layer: o.Layer, Group: o.Group, Module: o.Module, Forward: graph.None}}
		s.initializeOne(first, o.Params > 0 && d.rank(first) > 1)
	}
}

func (s *scope) initializeOne(ref graph.TensorID, random bool) {
	x := s.like(ref)
	x.Bytes = 0
	free := func(base string, k graph.Kind, in ...graph.TensorID) graph.TensorID {
		i := s.emit(base, k, in, x)
		o := s.d.b.At(i)
		o.FLOPs, o.Bytes = 0, 0
		return s.d.b.Output(i, 0)
	}
	var v graph.TensorID
	if random {
		shape := free("random_uniform/shape", "Const")
		low, high := free("random_uniform/min", "Const"), free("random_uniform/max", "Const")
		v = free("random_uniform/RandomUniform", "RandomUniform", shape)
		v = free("random_uniform/mul", "Mul", v, free("random_uniform/sub", "Sub", high, low))
		v = free("random_uniform", "Add", v, low)
	} else {
		v = free("initial_value", "Const")
	}
	free("Assign", "Assign", ref, v)
}
