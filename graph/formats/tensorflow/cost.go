package tensorflow

import (
	"slices"
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/units"
)

// cost sets the arithmetic and the traffic of op, of node n, which runs times times, one
// after another.
func (imp *importer) cost(op *graph.Op, n *nodepb.NodeDef, in, outs []output, made []graph.Tensor, times float64) {
	facts, _ := graph.FactsOf(op.Kind)
	op.GEMM = product(op.Kind, in, outs)
	if op.GEMM.IsZero() {
		op.GEMM = nodeProduct(n, in, outs)
	}
	if g := factorization(n, in); !g.IsZero() {
		op.GEMM, op.Kind = g, "MatMul"
	}
	if !op.GEMM.IsZero() && len(in) > 0 && in[0].dtype.pair() { // as of reals: parts beside each other, 8 operations for 2
		op.GEMM.K, op.GEMM.N = 2*op.GEMM.K, 2*op.GEMM.N
	}
	repeats, reread := times, 0.
	if l := recurrent(n, in); !l.IsZero() {
		op.GEMM, repeats, reread = l.GEMM, times*float64(l.times), l.reread*float64(in[0].dtype.bytes(1))
	}
	if repeats > 1 && facts.Class.Launches() {
		op.Repeats = int64(min(repeats, graph.MaxRepeats))
	}
	switch {
	case !op.GEMM.IsZero():
		if op.FLOPs = op.GEMM.FLOPs() * units.FLOPs(repeats); repeats < 1 {
			op.GEMM = graph.GEMM{}
		}
	case fourier(n.Op, in, outs) > 0:
		op.FLOPs = fourier(n.Op, in, outs) * units.FLOPs(times)
	case op.Kind == "Einsum":
		if sum := einsumOf(n, in); sum != nil {
			op.FLOPs, op.Kind = sum.FLOPs*units.FLOPs(times), elementwiseSum
		}
	case facts.Class == graph.ClassUpdate || facts.FLOPsPerElement > 0 && len(made) > 0:
		n := int64(0)
		for _, x := range append(append([]output{}, in...), outs...) {
			if x.shape != nil {
				n = max(n, elements(x.shape))
			}
		}
		op.FLOPs = units.FLOPs(facts.FLOPsPerElement * float64(n) * times)
	}
	op.Bytes = traffic(op.Kind, facts, in, made)
	op.Bytes = units.Bytes(min((float64(op.Bytes)+reread)*times, float64(graph.MaxBytes)))
	if !(float64(op.FLOPs) < 1e29) {
		op.FLOPs, op.GEMM = 1e29, graph.GEMM{}
	}
	if _, known := graph.FactsOf(op.Kind); !known && op.FLOPs > 0 && fourier(n.Op, in, outs) == 0 {
		imp.nameless[op.Kind]++
	}
	if (facts.Class == graph.ClassGEMM || facts.Class == graph.ClassConv) && op.FLOPs == 0 && !slices.ContainsFunc(outs, empty) {
		imp.unpriced[op.Kind]++
	}
}

// empty reports whether x is known to have no elements.
func empty(x output) bool { return x.shape != nil && elements(x.shape) == 0 }

// traffic is the device memory that one execution reads and writes.
func traffic(kind graph.Kind, facts graph.Facts, in []output, made []graph.Tensor) units.Bytes {
	var read, written units.Bytes
	for k := range in {
		twice := false
		for j := range min(k, 16) {
			twice = twice || in[j].id == in[k].id
		}
		if in[k].shape != nil && !twice {
			size := units.Bytes(in[k].dtype.bytes(elements(in[k].shape)))
			if in[k].resource && facts.Class == graph.ClassUpdate {
				size *= 2 // read and written in place
			}
			read = min(read+size, graph.MaxBytes)
		}
	}
	for _, t := range made {
		written = min(written+t.Bytes, graph.MaxBytes)
	}
	switch facts.Class {
	case graph.ClassInput, graph.ClassVariable, graph.ClassConst, graph.ClassMeta:
		return 0
	case graph.ClassGather:
		return min(2*written, graph.MaxBytes)
	case graph.ClassOther:
		if strings.HasPrefix(string(kind), "Save") || strings.HasPrefix(string(kind), "Restore") {
			return 0
		}
	}
	return min(read+written, graph.MaxBytes)
}

// product returns the matrix product that an op amounts to; zero for none.
func product(kind graph.Kind, in, outs []output) (g graph.GEMM) {
	if len(in) < 2 || len(outs) < 1 || outs[0].shape == nil {
		return g
	}
	x, y, out := in[0].shape, in[1].shape, outs[0].shape
	switch kind {
	case "MatMul", "BatchMatMul", "BatchMatMulV2":
		if len(x) < 2 || len(out) < 2 {
			return g
		}
		g = graph.GEMM{Batch: elements(out[:len(out)-2]), M: out[len(out)-2], N: out[len(out)-1]}
		if rows := g.M * elements(x[:len(x)-2]); rows > 0 { // x has M*K elements a product
			g.K = elements(x) / rows
		}
	case "Conv2D":
		if len(y) == 4 && y[3] > 0 {
			g = graph.GEMM{Batch: 1, M: elements(out) / y[3], N: y[3], K: elements(y[:3])}
		}
	case "DepthwiseConv2dNative":
		if len(y) == 4 && y[2] > 0 && y[3] > 0 {
			g = graph.GEMM{Batch: y[2], M: elements(out) / (y[2] * y[3]), N: y[3], K: y[0] * y[1]}
		}
	case "Conv2DBackpropInput": // sizes, filter, gradient of the output
		if len(in) > 2 && len(y) == 4 && in[2].shape != nil && y[2] > 0 && y[3] > 0 {
			g = graph.GEMM{Batch: 1, M: elements(in[2].shape) / y[3], N: y[0] * y[1] * y[2], K: y[3]}
		}
	case "Conv2DBackpropFilter": // input, sizes, gradient of the output
		if len(in) > 2 && len(out) == 4 && in[2].shape != nil && out[3] > 0 {
			g = graph.GEMM{Batch: 1, M: elements(out[:3]), N: out[3], K: elements(in[2].shape) / out[3]}
		}
	}
	return sound(g)
}

// sound returns g, or zero where it has an empty dimension or is absurdly large.
func sound(g graph.GEMM) graph.GEMM {
	if g.Batch < 1 || g.M < 1 || g.N < 1 || g.K < 1 || float64(g.FLOPs()) > 1e28 {
		return graph.GEMM{}
	}
	return g
}
