package measure

import (
	"math"

	"placer/graph"
	"placer/hw/gpu"
	"placer/sim"
	"placer/units"
)

// work is a launch that an op or a kernel asks of its device.
type work struct {
	kind     workKind
	class    graph.Class
	from     [2]graph.TensorID // where it reads; the later one of two, or sim.NoTensor
	to       graph.TensorID    // where it writes, or sim.NoTensor
	resident graph.OpID        // in whose permanent bytes it writes where to is no tensor
	product  gpu.Product       // without addresses
	parts    int               // equal parts along M that the product is cut into
	in, out  uint64            // bytes of a stream, multiples of 16
	fma      uint64
	operands uint64 // bytes that it may touch in the slab
}

type workKind uint8

const (
	nothing workKind = iota
	product
	stream
)

// largestOperand bounds what a product holds of its first operand: a convolution
// as a product reads each input once for every position of its kernel, which the
// slab has no room for. Larger ones are computed in parts.
const largestOperand = 1 << 30

// maxFMA bounds the arithmetic per 16 bytes of a stream.
const maxFMA = 4096

// workOf returns the work of op i, of one kernel where it runs several.
func workOf(g *graph.Graph, i graph.OpID, tf32 bool) work {
	o := g.Op(i)
	w := work{class: o.Kind.Class(), from: [2]graph.TensorID{sim.NoTensor, sim.NoTensor}, to: sim.NoTensor, resident: i} // an update writes in place
	if in := g.Inputs(i); len(in) > 0 {
		w.from = [2]graph.TensorID{in[0], in[min(1, len(in)-1)]}
	}
	first, end := g.Outputs(i)
	if first < end {
		w.to = first
	}
	switch w.class {
	case graph.ClassInput, graph.ClassVariable, graph.ClassConst, graph.ClassMeta:
		return w
	}
	t, ok := TypeOf(o.DType, tf32 && !o.Precise)
	const most = math.MaxInt32
	if m := o.GEMM; !m.IsZero() && ok && m.Batch > 0 && m.M > 0 && m.N > 0 && m.K > 0 && m.Batch <= most && m.M <= most && m.N <= most && m.K <= most && (t != gpu.F8 || m.Batch == 1) {
		w.kind, w.parts = product, 1
		w.product = gpu.Product{Type: t, Batch: int(m.Batch), M: int(m.M), N: int(m.N), K: int(m.K)}
		a, _, _ := w.product.Bytes()
		if a > largestOperand && m.Batch == 1 {
			w.parts = int((a + largestOperand - 1) / largestOperand)
			w.product.M = (w.product.M + w.parts - 1) / w.parts
		}
		a, b, c := w.product.Bytes()
		w.operands = round(a) + round(b) + round(c)
		return w
	}
	w.kind = stream
	var out uint64
	for x := first; x < end; x++ {
		out += uint64(g.Tensor(x).Bytes)
	}
	all, flops := uint64(max(o.Bytes, 0)), o.FLOPs
	if n, _ := o.Iterations(); n > 1 { // results may be of all iterations
		all, flops = all/uint64(n), flops/units.FLOPs(n)
		out = min(out, all/2)
	}
	out = min(out, all)
	w.streams(all-out, out, flops)
	return w
}

// TypeOf returns the type in which cuBLAS multiplies what a graph calls t; false
// where it has none.
func TypeOf(t graph.DType, tf32 bool) (gpu.DType, bool) {
	switch t {
	case graph.F32:
		if tf32 {
			return gpu.TF32, true
		}
		return gpu.F32, true
	case graph.TF32:
		return gpu.TF32, true
	case graph.F16:
		return gpu.F16, true
	case graph.BF16:
		return gpu.BF16, true
	case graph.F64:
		return gpu.F64, true
	case graph.F8:
		return gpu.F8, true
	}
	return 0, false
}

const align = 256

func round(n uint64) uint64 { return (n + align - 1) / align * align }
