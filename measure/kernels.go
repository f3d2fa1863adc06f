package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw/gpu"
	"placer/sim"
	"placer/units"
)

// piece is what runs as one kernel: an op, or several that the plan fuses.
type piece struct {
	ops   []graph.OpID // ascending
	dev   int
	class string // for the comparison; of several ops that of the one all others serve
	takes units.Seconds
	work  []work // launches, one behind the other
	times int64  // that all of them are launched
}

// launches reports whether k asks anything of its device.
func (k *piece) launches() bool {
	return slices.ContainsFunc(k.work, func(w work) bool { return w.kind != nothing })
}

// readKernels returns the kernels of the simulated step in the order in which
// they started, which is a topological one, and the kernel of each op, [N].
func readKernels(p *Problem) (kernels []piece, of []int32) {
	spans := slices.Clone(p.Predicted.Trace.Ops)
	slices.SortFunc(spans, func(a, b sim.OpSpan) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Op, b.Op)) })
	of = make([]int32, p.Graph.NumOps())
	for k, s := range spans {
		x := piece{ops: append([]graph.OpID{s.Op}, s.Fused...), dev: s.Device, takes: s.End - s.Start}
		for _, i := range x.ops {
			of[i] = int32(k)
		}
		kernels = append(kernels, x)
	}
	return kernels, of
}

// mostLaunches bounds the launches of one op.
const mostLaunches = 1 << 20

// workOfIterations returns the launches of one iteration of op i, whose work is w, and how
// many iterations there are: the first does the work, what the op launches beside it
// starts and ends.
func workOfIterations(g *graph.Graph, i graph.OpID, w work) (all []work, times int64, err error) {
	o := g.Op(i)
	times, kernels := o.Iterations()
	if times*kernels > mostLaunches {
		return nil, 0, fmt.Errorf("op %d (%s) launches %d kernels, want at most %d", i, o.Name, times*kernels, mostLaunches)
	}
	all = []work{w}
	if w.kind == nothing {
		return all, 1, nil
	}
	empty := work{kind: stream, class: w.class, from: w.from, to: w.to, resident: i}
	for range kernels - 1 {
		all = append(all, empty)
	}
	return all, times, nil
}

// checkKernels reports a trace that is none of the plan: every op runs once, on
// its device, and several in one kernel only where the plan fuses.
func checkKernels(p *Problem) error {
	seen := make([]bool, p.Graph.NumOps())
	n := 0
	for _, s := range p.Predicted.Trace.Ops {
		if len(s.Fused) > 0 && p.Plan.Fusion == nil {
			return fmt.Errorf("the simulated step fuses op %d, the plan fuses none", s.Op)
		}
		for _, i := range append([]graph.OpID{s.Op}, s.Fused...) {
			if int(i) >= len(seen) || seen[i] || int(p.Plan.Device[i]) != s.Device {
				return fmt.Errorf("the simulated step is of another plan: op %d on device %d", i, s.Device)
			}
			seen[i] = true
			n++
		}
	}
	if n != len(seen) {
		return fmt.Errorf("the simulated step has %d of %d ops", n, len(seen))
	}
	return nil
}

// dropped is the share of a kernel's bytes below which what a product does not
// move is left out: a bias.
const dropped = 1. / 16

// workOfKernel returns the launches that stand for a kernel of several ops, and
// its class.
//
// Without a product they are one stream of the bytes that enter and leave the
// kernel, with the arithmetic of all its ops. A product runs in cuBLAS and writes
// the kernel's result once. Of what its epilogue moves beside that, an operand as
// large as the result is read by the product itself, which adds to what is there.
// What then remains, if it is more than a bias, is a stream behind the product,
// with the epilogue's arithmetic: that costs a launch more than a library's fused
// kernel would.
func workOfKernel(g *graph.Graph, role []graph.FuseRole, ops []graph.OpID, tf32 bool) (all []work, class string) {
	inside := func(i graph.OpID) bool { _, ok := slices.BinarySearch(ops, i); return ok }
	var head *work // the product
	var in, out, total units.Bytes
	var flops units.FLOPs
	class, launches := g.Op(ops[0]).Kind.Class().String(), false
	for _, i := range ops {
		w := workOf(g, i, tf32)
		launches = launches || w.kind != nothing
		moved, written := fuse.Traffic(g, role, i, inside), fuse.Written(g, role, i, inside)
		total += moved
		out += written
		if role[i] == graph.FuseAnchor || role[i] == graph.FuseReduce {
			class = w.class.String()
		}
		if w.kind == product {
			head = &w
			first, end := g.Outputs(i)
			for t := first; t < end; t++ {
				out -= g.Tensor(t).Bytes // the result, whatever becomes of it in the kernel
			}
			continue
		}
		in += moved - written
		if w.kind != nothing {
			flops += max(0, g.Op(i).FLOPs)
		}
	}
	class = "fused " + class
	in, out = max(in, 0), max(out, 0)
	rest := work{kind: stream, to: sim.NoTensor, from: [2]graph.TensorID{sim.NoTensor, sim.NoTensor}}
	rest.ends(g, role, ops, inside)
	if head == nil {
		if !launches {
			return nil, class
		}
		rest.streams(uint64(in), uint64(out), flops)
		return []work{rest}, class
	}
	if rest.to != sim.NoTensor {
		head.to = rest.to
	}
	_, _, c := head.product.Bytes()
	if c *= uint64(head.parts); uint64(in) >= c && head.product.Type != gpu.F8 {
		head.product.Layout.Add = true
		in -= units.Bytes(c)
	}
	all = []work{*head}
	if float64(in+out) > dropped*float64(total) {
		rest.streams(uint64(in), uint64(out), flops)
		all = append(all, rest)
	}
	return all, class
}

// ends finds the largest tensors that a kernel reads and writes.
func (w *work) ends(g *graph.Graph, role []graph.FuseRole, ops []graph.OpID, inside func(graph.OpID) bool) {
	larger := func(at *graph.TensorID, t graph.TensorID) {
		if *at == sim.NoTensor || g.Tensor(t).Bytes > g.Tensor(*at).Bytes {
			*at = t
		}
	}
	for _, i := range ops {
		for _, t := range g.Inputs(i) {
			if !inside(g.Tensor(t).Producer) {
				larger(&w.from[0], t)
			}
		}
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			if role[i] != graph.FuseView && fuse.Held(g, t, inside) {
				larger(&w.to, t)
			}
		}
	}
	w.from[1] = w.from[0]
}

// streams makes w a stream of so many bytes and operations.
func (w *work) streams(in, out uint64, flops units.FLOPs) {
	w.in, w.out, w.fma = (in+15)/16*16, (out+15)/16*16, 0
	if w.in > 0 {
		w.fma = min(maxFMA, uint64(math.Round(float64(flops)/(8*float64(w.in/16)))))
	}
	w.operands = round(w.in) + round(w.out)
}
