package tensorflow

import (
	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/units"
)

// inside is what one execution of a function computes, moves and launches.
type inside struct {
	flops    units.FLOPs
	bytes    units.Bytes
	products units.FLOPs
	dearest  graph.GEMM // of the products
	dtype    graph.DType
	kernels  int64
	lists    []listed // what its results, lists of tensors, hold more than its arguments
}

// add counts an op of a function.
func (x *inside) add(o *graph.Op) {
	x.flops += o.FLOPs
	x.bytes = min(x.bytes+max(o.Bytes, 0), graph.MaxBytes)
	if !o.GEMM.IsZero() {
		x.products += o.GEMM.FLOPs() * units.FLOPs(max(o.Repeats, 1))
		if x.dearest.IsZero() || o.GEMM.FLOPs() > x.dearest.FLOPs() {
			x.dearest, x.dtype = o.GEMM, o.DType
		}
	}
	if o.Kind.Leads() {
		x.kernels = min(x.kernels+max(o.Repeats, 1)*max(o.Kernels, 1), graph.MaxRepeats)
	}
}

// whole makes the cost of op, of node n, that of the functions that n runs: those of a
// loop as often as it runs, of branches the dearest. Products are as many of the dearest
// as have their arithmetic. It returns how lists among outs grow.
func (imp *importer) whole(s *scope, at frame, n *nodepb.NodeDef, called []string, in, outs []output, op *graph.Op) (lists growth, err error) {
	trips := int64(1)
	lists = growth{bytes: make([]units.Bytes, len(outs))}
	var all inside
	switch n.Op {
	case "While", "StatelessWhile":
		if trips, err = imp.trips(s.prefix+n.Name, called, in); err != nil {
			trips = 1
			imp.once++
		}
		for _, name := range called {
			x, err := imp.trial(s, frame{times: 1}, n, name, in)
			if err != nil {
				return lists, err
			}
			if name == called[len(called)-1] { // the body
				lists = loopLists(in, outs, x.lists, float64(trips))
			}
			all.flops, all.products, all.kernels = all.flops+x.flops, all.products+x.products, all.kernels+x.kernels
			if all.bytes = min(all.bytes+x.bytes, graph.MaxBytes); all.dearest.IsZero() {
				all.dearest, all.dtype = x.dearest, x.dtype
			}
		}
	default:
		args := in
		if n.Op != "PartitionedCall" && n.Op != "StatefulPartitionedCall" {
			if args = in[min(1, len(in)):]; len(called) > 1 {
				imp.branching++
			}
		}
		dearest, err := imp.dearest(s, frame{times: 1}, n, called, args)
		if err != nil {
			return lists, err
		}
		if all, err = imp.trial(s, frame{times: 1}, n, dearest, args); err != nil {
			return lists, err
		}
	}
	times := at.times * float64(trips)
	op.FLOPs = min(all.flops*units.FLOPs(times), 1e29)
	op.Bytes = units.Bytes(min(float64(all.bytes)*times, float64(graph.MaxBytes)))
	op.Repeats = int64(min(max(times, 1), graph.MaxRepeats))
	op.Kernels = max(min(all.kernels, graph.MaxRepeats/op.Repeats), 1)
	if one := all.dearest.FLOPs(); one > 0 {
		op.GEMM, op.DType = all.dearest, all.dtype
		op.GEMM.Batch *= max(int64(all.products/one), 1)
		op.GEMM = sound(op.GEMM)
	}
	return lists, nil
}
