package fusion

import (
	"slices"

	"placer/internal/unionfind"
	"placer/plan"
)

// reference is a plan that samples are set against, as the kernels it has.
type reference struct {
	fusion  []uint8
	kernel  []int32   // [N] of each op
	size    []int32   // [K] ops
	seconds []float64 // [K] weighted
	weight  []float64 // [N]
}

// Of what a second of an op weighs, onDevice is by the part of the critical path
// that its device has, anywhere is the same for all, and the rest is for ops on the
// critical path.
const (
	onDevice = 0.3
	anywhere = 0.01
)

// newReference makes the plan best the reference, and its devices' parts of the
// critical path the weights. An op weighs by the critical path, but next to nothing if
// its device was idle for long enough to run it before the kernel that it is in.
func (l *learner) newReference(best *plan.Decision) *reference {
	n := len(best.Device)
	on, idle := make([]bool, n), make([]float64, n)
	l.kernels[0].Critical(&plan.Plan{Decision: *best}, l.weight, on, idle)
	r := &reference{fusion: slices.Clone(best.Fusion), weight: make([]float64, n)}
	for i, on := range on {
		d := best.Device[i]
		r.weight[i] = anywhere
		if idle[i] >= l.run.Problem.Evaluator.OpSeconds(int(d))[i] {
			continue
		}
		r.weight[i] += onDevice * l.weight[d]
		if on {
			r.weight[i] += 1 - onDevice
		}
	}
	x := priced{fusion: best.Fusion}
	x.kernel, x.takes = l.kernels[0].Fuse(best.Device, best.Fusion)
	r.kernel = slices.Clone(x.kernel)
	r.seconds, r.size = r.weigh(x, nil, nil)
	return r
}

// weigh writes the seconds of x's kernels, each weighted as the op in it that weighs
// most, and how many ops they have, [K], into seconds and size if there is room.
func (r *reference) weigh(x priced, seconds []float64, size []int32) ([]float64, []int32) {
	n := len(x.takes)
	seconds, size = resized(seconds, n), resized(size, n)
	clear(seconds)
	clear(size)
	for i, k := range x.kernel {
		seconds[k] = max(seconds[k], r.weight[i])
		size[k]++
	}
	for k, s := range x.takes {
		seconds[k] *= s
	}
	return seconds, size
}

// difference is what a class's having another level than in the reference changes.
type difference struct {
	class, level int32
	seconds      float64 // weighted, of the kernels it changes
	weight       float64 // 1 where nothing else changed these
}

// regions finds the differences between samples and a reference. Kernels that
// either has and the other has not fall into regions that share no op. What a
// region takes more than in the reference is due to the classes that have another
// level in it: exactly where it is one, and otherwise told of each, weighted by one
// over the square of their number (difference rewards: D. Wolpert and K. Tumer,
// Advances in Complex Systems 4, 2001).
type regions struct {
	seconds []float64      // [K] weighted, of the sample's kernels
	size    []int32        // [K] ops
	was     []int32        // [K] the reference's kernel of the first op
	changed []bool         // [K] whether the reference has no such kernel
	region  unionfind.Sets // [K] parent in a forest, whose roots are regions
	holds   []int32        // [K of the reference] a changed kernel that has an op of it, or -1
	more    []float64      // [K] of roots: seconds that the region takes more
	at      []int32        // [C] where a class is in what is found
	pairs   []uint64       // region and class
}

// differences appends what sets the sample y apart from r.
func (f *regions) differences(to []difference, x *classes, r *reference, y priced) []difference {
	f.seconds, f.size = r.weigh(y, f.seconds, f.size)
	f.compare(r, y.kernel)
	f.at = resized(f.at, len(x.ops))
	f.pairs = f.pairs[:0]
	for c, ops := range x.ops {
		level := y.fusion[ops[0]]
		if level == r.fusion[ops[0]] {
			continue
		}
		f.at[c] = int32(len(to))
		to = append(to, difference{class: int32(c), level: int32(level), weight: 1})
		for _, i := range ops {
			if k := y.kernel[i]; f.changed[k] {
				f.pairs = append(f.pairs, uint64(f.region.Root(k))<<32|uint64(c))
			}
		}
	}
	slices.Sort(f.pairs)
	f.pairs = slices.Compact(f.pairs)
	for lo, hi := 0, 0; lo < len(f.pairs); lo = hi {
		region := f.pairs[lo] >> 32
		for hi < len(f.pairs) && f.pairs[hi]>>32 == region {
			hi++
		}
		n := float64(hi - lo)
		for _, p := range f.pairs[lo:hi] {
			d := &to[f.at[uint32(p)]]
			d.seconds += f.more[region]
			d.weight = min(d.weight, 1/(n*n))
		}
	}
	return to
}

// compare finds the regions of a sample, whose ops are in kernel, [N], and what each takes
// more than in r.
func (f *regions) compare(r *reference, kernel []int32) {
	f.findChanged(r, kernel)
	f.join(r, kernel)
	f.more = resized(f.more, len(f.seconds))
	clear(f.more)
	for k, x := range f.seconds {
		if f.changed[k] {
			f.more[f.region.Root(int32(k))] += x
		}
	}
	for k, h := range f.holds {
		if h >= 0 {
			f.more[f.region.Root(h)] -= r.seconds[k]
		}
	}
}

// findChanged finds the kernels whose ops are not all those of one kernel of r.
func (f *regions) findChanged(r *reference, kernel []int32) {
	f.changed, f.was = resized(f.changed, len(f.seconds)), resized(f.was, len(f.seconds))
	for k := range f.was {
		f.was[k] = -1
	}
	for i, k := range kernel {
		switch was := r.kernel[i]; {
		case f.was[k] < 0:
			f.was[k], f.changed[k] = was, f.size[k] != r.size[was]
		case f.was[k] != was:
			f.changed[k] = true
		}
	}
}

// join joins the changed kernels that share a kernel of r into regions.
func (f *regions) join(r *reference, kernel []int32) {
	f.region, f.holds = resized(f.region, len(f.seconds)), resized(f.holds, len(r.seconds))
	for k := range f.region {
		f.region[k] = int32(k)
	}
	for k := range f.holds {
		f.holds[k] = -1
	}
	for i, k := range kernel {
		if !f.changed[k] {
			continue
		}
		if h := &f.holds[r.kernel[i]]; *h < 0 {
			*h = k
		} else {
			f.region[f.region.Root(*h)] = f.region.Root(k)
		}
	}
}

// resized returns x with n elements, which are undefined.
func resized[T any](x []T, n int) []T { return slices.Grow(x[:0], n)[:n] }
