package graph

import (
	"fmt"
	"math"

	"placer/units"
)

// MaxBytes bounds every byte count of a graph, so that sums cannot overflow.
const MaxBytes units.Bytes = 1 << 55

// Check reports the first broken invariant: ops in topological order with
// unique names, finite non-negative costs, references in range, sums that fit.
// Build calls it; a Graph in hand has passed.
func (g *Graph) Check() error {
	if len(g.ops) == 0 {
		return fmt.Errorf("graph %s: %w", g.name, errNoOps)
	}
	names := make(map[string]struct{}, len(g.ops))
	var total units.Bytes
	add := func(b units.Bytes) bool {
		total += min(max(b, 0), MaxBytes)
		return b >= 0 && b <= MaxBytes && total <= MaxBytes
	}
	for i := range g.ops {
		o := &g.ops[i]
		fail := func(format string, a ...any) error {
			return fmt.Errorf("graph %s: op %d (%s): %s", g.name, i, o.Name, fmt.Sprintf(format, a...))
		}
		if o.Name == "" || o.Kind == "" {
			return fail("has no name or no kind")
		}
		if _, twice := names[o.Name]; twice {
			return fail("an earlier op has the same name")
		}
		names[o.Name] = struct{}{}
		if f := float64(o.FLOPs); f < 0 || f > 1e30 || math.IsNaN(f) {
			return fail("%v FLOPs", f)
		}
		if !add(o.Bytes) || !add(o.Resident) || !add(o.Workspace) || o.Params < 0 {
			return fail("byte counts %d, %d, %d or parameters %d out of range", o.Bytes, o.Resident, o.Workspace, o.Params)
		}
		if m := o.GEMM; !m.IsZero() && (m.Batch < 1 || m.M < 1 || m.N < 1 || m.K < 1) {
			return fail("product %+v has an empty dimension", m)
		}
		if n, k := o.Iterations(); o.Repeats < 0 || o.Kernels < 0 || n > MaxRepeats || k > MaxRepeats/n {
			return fail("%d iterations of %d kernels, want at most %d kernels in all", o.Repeats, o.Kernels, int64(MaxRepeats))
		}
		if o.Layer < 0 || o.Group < 0 || o.Forward < None || int(o.Forward) >= len(g.ops) || o.Phase > Update || o.DType >= numDTypes {
			return fail("layer %d, group %d, forward op %d, phase %d or type %d out of range", o.Layer, o.Group, o.Forward, o.Phase, o.DType)
		}
		for _, t := range g.Inputs(OpID(i)) {
			if g.tensors[t].Producer >= OpID(i) {
				return fail("reads tensor %d of op %d, which does not come before it", t, g.tensors[t].Producer)
			}
		}
		for _, c := range g.Control(OpID(i)) {
			if c >= OpID(i) {
				return fail("waits for op %d, which does not come before it", c)
			}
		}
		first, end := g.Outputs(OpID(i))
		for t := first; t < end; t++ {
			if x := &g.tensors[t]; !add(x.Bytes) || x.Producer != OpID(i) || x.DType >= numDTypes {
				return fail("output %d: %d bytes, producer %d, type %d", t-first, x.Bytes, x.Producer, x.DType)
			}
		}
	}
	return nil
}
