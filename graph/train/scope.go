package train

import (
	"strconv"

	"placer/graph"
	"placer/units"
)

// scope adds ops that share a name prefix and annotations.
type scope struct {
	d      *deriver
	prefix string   // ends in a slash
	common graph.Op // Phase, DType, Precise, Layer, Group, Forward, Module of every op added
	used   []usedName
}

type usedName struct {
	name string
	n    int
}

// backwardScope returns the scope of the gradient of op i.
func (d *deriver) backwardScope(i graph.OpID) *scope {
	o := d.b.At(i)
	return &scope{d: d, prefix: d.root[0] + "/" + o.Name + "_grad/",
		common: graph.Op{Phase: graph.Backward, DType: o.DType, Precise: o.Precise, Layer: o.Layer, Forward: i, Module: o.Module, Bytes: graph.Auto}}
}

// name returns base within the scope, numbered from the second on as TensorFlow
// does.
func (s *scope) name(base string) string {
	for k := range s.used {
		if u := &s.used[k]; u.name == base {
			u.n++
			return s.prefix + base + "_" + strconv.Itoa(u.n-1)
		}
	}
	s.used = append(s.used, usedName{base, 1})
	return s.prefix + base
}

// emit adds an op of kind under the name base, with the FLOPs of the facts
// table.
func (s *scope) emit(base string, kind graph.Kind, in []graph.TensorID, outs ...graph.Tensor) graph.OpID {
	o := s.common
	o.Name, o.Kind = s.name(base), kind
	f, _ := graph.FactsOf(kind)
	if f.FLOPsPerElement > 0 {
		n := int64(0)
		for _, t := range in {
			n = max(n, s.d.size(t))
		}
		for k := range outs {
			n = max(n, elements(&outs[k]))
		}
		o.FLOPs = units.FLOPs(f.FLOPsPerElement * float64(n))
	}
	return s.d.b.Op(o, in, outs...)
}

// one adds an op with one output and returns that.
func (s *scope) one(kind graph.Kind, in []graph.TensorID, out graph.Tensor) graph.TensorID {
	return s.d.b.Output(s.emit(string(kind), kind, in, out), 0)
}

// unary adds a kind of one operand giving the shape and type of like.
func (s *scope) unary(kind graph.Kind, x, like graph.TensorID) graph.TensorID {
	return s.one(kind, []graph.TensorID{x}, s.like(like))
}

// binary adds a kind of two operands giving the shape and type of like.
func (s *scope) binary(kind graph.Kind, a, b, like graph.TensorID) graph.TensorID {
	return s.one(kind, []graph.TensorID{a, b}, s.like(like))
}

// host adds an op on integers that runs on the host: no FLOPs, no Bytes.
func (s *scope) host(kind graph.Kind, in []graph.TensorID, outs ...graph.Tensor) graph.TensorID {
	i := s.emit(string(kind), kind, in, outs...)
	o := s.d.b.At(i)
	o.DType, o.FLOPs, o.Bytes = graph.I32, 0, 0
	return s.d.b.Output(i, 0)
}

// constant adds an op that holds the constant x.
func (s *scope) constant(x graph.Tensor) graph.TensorID { return s.constantAs("Const", x) }

func (s *scope) constantAs(base string, x graph.Tensor) graph.TensorID {
	x.Resident = true
	i := s.emit(base, s.d.constantKind, nil, x)
	o := s.d.b.At(i)
	o.DType = x.DType
	o.Resident = units.Bytes(elements(&x) * x.DType.Size())
	return s.d.b.Output(i, 0)
}

// ints is an integer vector of n elements; n < 0 is a scalar.
func ints(n int) graph.Tensor {
	if n < 0 {
		return graph.Tensor{DType: graph.I32, Shape: graph.Shape{}, Bytes: graph.Auto}
	}
	return graph.Tensor{DType: graph.I32, Shape: graph.Shape{int64(n)}, Bytes: graph.Auto}
}

// scalar is a float scalar.
func scalar(t graph.DType) graph.Tensor {
	return graph.Tensor{DType: t, Shape: graph.Shape{}, Bytes: graph.Auto}
}

// axes adds an integer constant of n elements; n < 0 is a scalar.
func (s *scope) axes(n int) graph.TensorID { return s.constant(ints(n)) }

// shape returns the shape of t as a tensor: a Shape op, or a constant.
func (s *scope) shape(t graph.TensorID) graph.TensorID {
	v := ints(s.d.rank(t))
	if s.d.cfg.StaticShapes {
		return s.constantAs("Shape", v)
	}
	return s.host("Shape", []graph.TensorID{t}, v)
}

// integer returns the rank or size of t as a tensor (kind Rank or Size). Ranks
// are always known, so TensorFlow writes them as constants.
func (s *scope) integer(kind graph.Kind, t graph.TensorID) graph.TensorID {
	if kind == "Rank" || s.d.cfg.StaticShapes {
		return s.constantAs(string(kind), ints(-1))
	}
	return s.host(kind, []graph.TensorID{t}, ints(-1))
}

// like returns a tensor of the shape and type of t that owns its memory.
func (s *scope) like(t graph.TensorID) graph.Tensor {
	x := *s.d.b.TensorAt(t)
	x.Resident = false
	return x
}

// reshape adds a Reshape of t to shape, giving a tensor like that of to.
func (s *scope) reshape(t, shape, to graph.TensorID) graph.TensorID {
	return s.one("Reshape", []graph.TensorID{t, shape}, s.like(to))
}

// sum adds a Sum of t over axes to a tensor with the elements of that of to. A
// Sum over no axes passes its input on.
func (s *scope) sum(t, axes, to graph.TensorID) graph.TensorID {
	y := s.one("Sum", []graph.TensorID{t, axes}, s.like(to))
	if s.d.size(t) == s.d.size(to) {
		o := s.d.b.At(s.d.b.TensorAt(y).Producer)
		o.FLOPs, o.Bytes = 0, 0
	}
	return y
}

// size returns the number of elements of t.
func (d *deriver) size(t graph.TensorID) int64 { return elements(d.b.TensorAt(t)) }

// bytes returns the bytes of t.
func (d *deriver) bytes(t graph.TensorID) units.Bytes {
	x := d.b.TensorAt(t)
	if x.Bytes >= 0 {
		return x.Bytes
	}
	return units.Bytes(elements(x) * x.DType.Size())
}

// asBool returns the bytes of n booleans.
func asBool(n int64) units.Bytes { return units.Bytes(n * graph.Bool.Size()) }

func flops[T int | int64](n T) units.FLOPs { return units.FLOPs(n) }

// rank returns the number of dimensions of t, 1 where its shape is not known.
func (d *deriver) rank(t graph.TensorID) int {
	if s := d.b.TensorAt(t).Shape; s != nil {
		return len(s)
	}
	return 1
}

// sameShape reports whether a and b have equal shapes, as far as known.
func (d *deriver) sameShape(a, b graph.TensorID) bool {
	x, y := d.b.TensorAt(a).Shape, d.b.TensorAt(b).Shape
	if x == nil || y == nil {
		return d.size(a) == d.size(b)
	}
	return x.Equal(y)
}

// elements returns the number of elements of x; where only its bytes are known,
// as many as these hold.
func elements(x *graph.Tensor) int64 {
	if x.Shape == nil && x.Bytes >= 0 {
		return int64(x.Bytes) / x.DType.Size()
	}
	n, err := x.Shape.Elements()
	if err != nil {
		return 0 // Build reports the shape
	}
	return n
}
