//go:build !light

package nn

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// opBase is what the three gorgonia operations below have in common.
type opBase struct {
	name  string
	id    uint64 // unique in the graph: gorgonia merges nodes of equal hash
	ranks []int  // of the inputs
	rank  int    // of the result; 0 is a scalar
}

func (b *opBase) Arity() int           { return len(b.ranks) }
func (b *opBase) ReturnsPtr() bool     { return true }
func (b *opBase) CallsExtern() bool    { return false }
func (b *opBase) OverwritesInput() int { return -1 }
func (b *opBase) String() string       { return fmt.Sprintf("%s#%d", b.name, b.id) }

func (b *opBase) WriteHash(h hash.Hash) {
	h.Write([]byte(b.name))
	h.Write(binary.LittleEndian.AppendUint64(nil, b.id))
}

func (b *opBase) Hashcode() uint32 {
	h := fnv.New32a()
	b.WriteHash(h)
	return h.Sum32()
}

func (b *opBase) Type() hm.Type {
	of := func(rank int) hm.Type {
		if rank == 0 {
			return tensor.Float32
		}
		return gorgonia.TensorType{Dims: rank, Of: tensor.Float32}
	}
	var ts []hm.Type
	for _, r := range b.ranks {
		ts = append(ts, of(r))
	}
	return hm.NewFnType(append(ts, of(b.rank))...)
}

// result is a buffer with the tensor that shows it to gorgonia, which drops values
// after each run; the slots stay.
type result struct {
	buffer
	shape tensor.Shape
	m     Mat
	dense *tensor.Dense
}

// resultOf returns the result of a node's shape.
func resultOf(x *gorgonia.Node) result {
	s := x.Shape().Clone()
	if len(s) == 1 {
		return result{buffer: buffer{n: 1, d: s[0]}, shape: s}
	}
	return result{buffer: buffer{n: s[0], d: s[1]}, shape: s}
}

func (r *result) get() (Mat, *tensor.Dense) {
	if r.dense == nil {
		r.m = r.buffer.get()
		r.dense = tensor.New(tensor.WithShape(r.shape...), tensor.WithBacking(r.m.V))
	}
	return r.m, r.dense
}

// matOf views a gorgonia value as a matrix.
func matOf(v gorgonia.Value) Mat {
	switch t := v.(type) {
	case *tensor.Dense:
		x, ok := t.Data().([]float32)
		if !ok {
			break
		}
		switch s := t.Shape(); len(s) {
		case 1:
			return Mat{1, s[0], x}
		case 2:
			return Mat{s[0], s[1], x}
		}
	case *gorgonia.F32:
		return Mat{1, 1, []float32{float32(*t)}}
	}
	panic(fmt.Sprintf("nn: value of type %T and shape %v is not a matrix", v, v.Shape()))
}

// fused is the forward operation of a kernel.
type fused struct {
	opBase
	expression *expression
	kernel     Kernel
	shape      tensor.Shape // of the result
	wanted     []bool       // which inputs get a gradient
	out        result       // unless it is a scalar
	in         []Mat

	position int // in the order of execution
}

func (o *fused) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return o.shape.Clone(), nil
}

func (o *fused) Do(vs ...gorgonia.Value) (gorgonia.Value, error) {
	o.expression.begin(o.position, o.name)
	o.in = o.in[:0]
	for _, v := range vs {
		o.in = append(o.in, matOf(v))
	}
	if o.rank == 0 {
		m := NewMat(1, 1)
		o.kernel.Forward(o.expression.context, o.in, m)
		return gorgonia.NewF32(m.V[0]), nil
	}
	m, dense := o.out.get()
	o.kernel.Forward(o.expression.context, o.in, m)
	return dense, nil
}

func (o *fused) DiffWRT(int) []bool { return append([]bool(nil), o.wanted...) }

// SymDiff adds one node that computes every gradient, and one node per further
// gradient to pick it.
func (o *fused) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	b := &backward{opBase: opBase{o.name + "'", o.expression.nextID(), append(append([]int(nil), o.ranks...), o.rank, o.rank), 0}, forward: o, din: make([]result, len(in))}
	b.first = -1
	for i, w := range o.wanted {
		if w {
			b.din[i] = resultOf(in[i])
			if b.first < 0 {
				b.first = i
			}
		}
	}
	b.rank = o.ranks[b.first]
	node, err := gorgonia.ApplyOp(b, append(append(gorgonia.Nodes{}, in...), out, grad)...)
	if err != nil {
		return nil, err
	}
	res := make(gorgonia.Nodes, len(in))
	for i, w := range o.wanted {
		switch {
		case !w:
		case i == b.first:
			res[i] = node
		default:
			p := &pick{opBase: opBase{fmt.Sprintf("%s'%d", o.name, i), o.expression.nextID(), []int{b.rank}, o.ranks[i]}, of: b, index: i}
			if res[i], err = gorgonia.ApplyOp(p, node); err != nil {
				return nil, err
			}
		}
	}
	return res, nil
}

// backward computes all gradients of a fused operation and returns the first.
type backward struct {
	opBase
	forward *fused
	first   int
	din     []result
	in, d   []Mat

	position int
}

func (o *backward) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return o.din[o.first].shape.Clone(), nil
}

func (o *backward) Do(vs ...gorgonia.Value) (gorgonia.Value, error) {
	o.forward.expression.begin(o.position, o.name)
	if !o.forward.expression.forwardOnly {
		o.in, o.d = o.in[:0], o.d[:0]
		for _, v := range vs {
			o.in = append(o.in, matOf(v))
		}
		for i, w := range o.forward.wanted {
			var m Mat
			if w {
				m, _ = o.din[i].get()
			}
			o.d = append(o.d, m)
		}
		n := len(o.din)
		o.forward.kernel.Backward(o.forward.expression.context, o.in[:n], o.in[n], o.in[n+1], o.d)
	}
	_, t := o.din[o.first].get()
	return t, nil
}

// pick returns gradient number index of a backward operation, its only child.
type pick struct {
	opBase
	of    *backward
	index int
}

func (o *pick) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return o.of.din[o.index].shape.Clone(), nil
}

func (o *pick) Do(...gorgonia.Value) (gorgonia.Value, error) {
	_, t := o.of.din[o.index].get()
	return t, nil
}
