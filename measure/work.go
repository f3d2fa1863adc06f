package measure

import (
	"math"

	"placer/gpu"
	"placer/graph"
)

// work is what an op asks of its device.
type work struct {
	kind     workKind
	class    graph.Class
	product  gpu.Product // without addresses
	parts    int         // equal parts along M that the product is cut into
	in, out  uint64      // bytes of a stream, multiples of 16
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

// workOf returns the work of op i.
func workOf(g *graph.Graph, i graph.OpID, tf32 bool) work {
	o := g.Op(i)
	w := work{class: o.Kind.Class()}
	switch w.class {
	case graph.ClassInput, graph.ClassVariable, graph.ClassConst, graph.ClassMeta:
		return w
	}
	t, ok := typeOf(o.DType, tf32)
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
	first, end := g.Outputs(i)
	for x := first; x < end; x++ {
		w.out += uint64(g.Tensor(x).Bytes)
	}
	w.out = min(w.out, uint64(max(o.Bytes, 0)))
	w.in = (uint64(max(o.Bytes, 0)) - w.out + 15) / 16 * 16
	w.out = (w.out + 15) / 16 * 16
	if w.in > 0 {
		w.fma = min(maxFMA, uint64(math.Round(float64(o.FLOPs)/(8*float64(w.in/16)))))
	}
	w.operands = round(w.in) + round(w.out)
	return w
}

// typeOf returns the type of cuBLAS for t.
func typeOf(t graph.DType, tf32 bool) (gpu.DType, bool) {
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
