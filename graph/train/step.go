package train

import (
	"placer/graph"
	"placer/units"
)

// step is the differentiation of one op: a rule reads the gradients of the
// outputs and gives those of the inputs.
type step struct {
	*scope
	op    graph.OpID
	in    []graph.TensorID // inputs of op
	first graph.TensorID   // first output of op
	out   []value          // gradient of each output, none where nothing uses it
	given []value          // gradient of each input so far
}

// rule adds the ops of one gradient function.
type rule func(*step)

// want reports whether the gradient of input k is to be made.
func (s *step) want(k int) bool { return k < len(s.in) && s.d.wanted(s.in[k]) }

// give makes t the gradient of input k.
func (s *step) give(k int, t graph.TensorID) { s.giveValue(k, dense(t)) }

func (s *step) giveValue(k int, v value) {
	if s.want(k) {
		s.given[k] = v
	}
}

// y returns output k of the op.
func (s *step) y(k int) graph.TensorID { return s.first + graph.TensorID(k) }

// forward returns the op differentiated, with the cost of one of its iterations.
func (s *step) forward() *graph.Op {
	o := s.d.fwd.Op(s.op)
	n, _ := o.Iterations()
	if n == 1 {
		return o
	}
	once := *o
	once.FLOPs /= units.FLOPs(n)
	once.Bytes /= units.Bytes(n)
	return &once
}

// repeat makes the gradient's ops, those from the builder's op first on, repeat as the op
// differentiated does: what the rule made is one iteration. Ops on the host, which move
// nothing, are for all of them.
func (s *step) repeat(first int) {
	f := s.d.fwd.Op(s.op)
	n, kernels := f.Iterations()
	if n*kernels == 1 {
		return
	}
	for i := first; i < s.d.b.NumOps(); i++ {
		o := s.d.b.At(graph.OpID(i))
		if !o.Kind.Class().Launches() || o.Bytes == 0 {
			continue
		}
		o.Repeats, o.Kernels = f.Repeats, f.Kernels
		o.FLOPs *= units.FLOPs(n)
		if o.Bytes > 0 {
			o.Bytes = units.Bytes(min(float64(o.Bytes)*float64(n), float64(graph.MaxBytes)))
		}
	}
}

// grad returns the gradient of output k as a dense tensor, zeros where nothing
// uses the output.
func (s *step) grad(k int) graph.TensorID {
	v := s.out[k]
	if v.isNone() {
		v = dense(s.one("ZerosLike", []graph.TensorID{s.y(k)}, s.like(s.y(k))))
	} else if v.isSparse() {
		v = dense(s.densify(v, s.y(k)))
	}
	s.out[k] = v
	return v.dense
}

// arg returns input k, or where the op has fewer (an attribute of ONNX in place
// of TensorFlow's operand) a constant vector.
func (s *step) arg(k int) graph.TensorID {
	if k < len(s.in) {
		return s.in[k]
	}
	return s.axes(1)
}

// zeroUnused adds, for a graph with AllGradients, the ZerosLike of the float
// outputs without gradient. No rule reads them and no step runs them.
func (s *step) zeroUnused() {
	if !s.d.cfg.AllGradients || len(s.out) < 2 || keepsUnused[s.forward().Kind] {
		return
	}
	for k, v := range s.out {
		if !v.isNone() || !isFloat(s.d.b.TensorAt(s.y(k)).DType) {
			continue
		}
		z := s.like(s.y(k))
		z.Bytes = 0
		i := s.emit("ZerosLike", "ZerosLike", []graph.TensorID{s.y(k)}, z)
		s.d.b.At(i).FLOPs, s.d.b.At(i).Bytes = 0, 0
	}
}

// keepsUnused lists kinds whose rule makes the zeros it reads itself.
var keepsUnused = map[graph.Kind]bool{"Split": true, "SplitV": true, "Unpack": true, "IdentityN": true}

// finish contributes the gradients given, gated when there are several.
func (s *step) finish() {
	n := 0
	for _, v := range s.given {
		if !v.isNone() {
			n++
		}
	}
	if n > 1 && s.d.cfg.GateGradients {
		s.gate()
	}
	for k, v := range s.given {
		if !v.isNone() && s.d.leads[s.in[k]] {
			s.d.contribute(s.in[k], v)
		}
	}
}

// gate makes every gradient given wait for all of them (control_flow_ops.tuple).
func (s *step) gate() {
	b := s.d.b
	deps := s.emit("tuple/group_deps", "NoOp", nil)
	for _, v := range s.given {
		for _, t := range []graph.TensorID{v.dense, v.rows} {
			if t != absent {
				b.Control(b.TensorAt(t).Producer, deps)
			}
		}
	}
	identity := func(t graph.TensorID) graph.TensorID {
		if t == absent {
			return absent
		}
		i := s.emit("tuple/control_dependency", "Identity", []graph.TensorID{t}, s.like(t))
		b.Control(deps, i)
		return b.Output(i, 0)
	}
	for k := range s.given {
		s.given[k].dense = identity(s.given[k].dense)
		s.given[k].rows = identity(s.given[k].rows)
	}
}
