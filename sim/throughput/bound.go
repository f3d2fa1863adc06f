package throughput

import (
	"cmp"
	"context"
	"math"
	"slices"

	"placer/internal/unionfind"
)

// BoundEffort is the effort of a bound that a search or a report waits for: some seconds on graphs
// of a million ops, which all of it would take a minute. Those of 50,000 ops need less.
const BoundEffort = 20_000_000

// Bound returns a proven lower bound, in seconds: no placement that fits has a
// lower maximum load. upper is a load that is reached, or +Inf.
//
// Two bounds are taken together. Work: all devices together do at most their
// number times the largest load. Contradiction: suppose every load is at most T.
// A net that some block on it could not pay for is not cut, so its blocks share
// a device; a net whose blocks no device could hold together is cut, so each of
// its blocks pays for it; both follow from one another until nothing changes. T
// is impossible if then a set of blocks fits no device, if more sets than there
// are devices are too large to share one, or if the work with the forced
// communication is too much. The largest impossible T is found by bisection, which ends
// early, with a bound that may be lower, when ctx ends or it has looked at effort blocks of
// nets.
func (x *Instance) Bound(ctx context.Context, upper float64, effort int) float64 {
	low := x.workBound()
	high := upper
	if math.IsInf(high, 1) || math.IsNaN(high) {
		high = 0
		for b := range x.Members {
			high += x.Longest(int32(b))
		}
		for e := range x.Nets {
			high += x.Nets[e].Seconds * float64(len(x.Nets[e].Blocks))
		}
	}
	if !(high > low) || math.IsInf(high, 1) {
		return low
	}
	for range 40 {
		t := (low + high) / 2
		impossible, spent := x.impossible(ctx, t, effort)
		if effort -= spent; effort <= 0 || ctx.Err() != nil {
			break
		}
		if impossible {
			low = t
		} else {
			high = t
		}
	}
	return low
}

// pins returns the number of blocks of all nets, each once for each of its nets.
func (x *Instance) pins() (n int) {
	for k := range x.Nets {
		n += len(x.Nets[k].Blocks)
	}
	return n
}

// workBound is the work over the devices: a CPU does at most the largest ratio
// of an accelerator's time to its own.
func (x *Instance) workBound() float64 {
	work, capacity := x.work(0)
	return work / capacity
}

// work returns the seconds of all blocks on the class that is fastest at each,
// plus communication, and how many of these a second of all devices together
// gives at most.
func (x *Instance) work(communication float64) (work, capacity float64) {
	ratio := make([]float64, len(x.Classes))
	for b := range x.Members {
		fastest := math.Inf(1)
		for c := range x.Classes {
			if !x.Classes[c].CPU || x.onlyCPU() {
				fastest = min(fastest, x.Classes[c].Seconds[b])
			}
		}
		if math.IsInf(fastest, 1) {
			continue // a CPU's work, which does not count here
		}
		work += fastest
		for c := range x.Classes {
			if t := x.Classes[c].Seconds[b]; fastest > 0 && t > 0 {
				ratio[c] = max(ratio[c], fastest/t)
			} else if fastest > 0 {
				ratio[c] = math.Inf(1)
			}
		}
	}
	for c := range ratio {
		if !x.Classes[c].CPU {
			ratio[c] = max(ratio[c], 1) // communication takes its time on each
		}
		capacity += ratio[c] * float64(len(x.Classes[c].Devices))
	}
	return (work + communication) * (1 - 1e-12), max(capacity, 1e-300)
}

func (x *Instance) onlyCPU() bool {
	for c := range x.Classes {
		if !x.Classes[c].CPU {
			return false
		}
	}
	return true
}

// impossible reports that no placement has all loads at most t, and at how many blocks of nets
// it looked. It means nothing where ctx has ended or these are as many as effort.
func (x *Instance) impossible(ctx context.Context, t float64, effort int) (is bool, spent int) {
	t *= 1 + 1e-12
	p := newProof(x, t)
	pins := x.pins()
	for {
		again, contradiction := p.round(ctx)
		spent += pins
		if contradiction {
			return true, spent
		}
		if !again {
			return p.overfull(), spent
		}
		if spent >= effort || ctx.Err() != nil {
			return false, spent
		}
	}
}

// proof is what follows from every load being at most t.
type proof struct {
	x      *Instance
	t      float64
	sets   unionfind.Sets // [B]
	time   [][]float64    // [C][B] of the set of each root
	bytes  []int64        // [B]
	forced []float64      // [B] communication that the set's device pays
	cut    float64        // seconds of nets that are cut, summed
}

func newProof(x *Instance, t float64) *proof {
	p := &proof{x: x, t: t, sets: unionfind.New(len(x.Members)), bytes: append([]int64(nil), x.Size...), forced: make([]float64, len(x.Members))}
	for c := range x.Classes {
		p.time = append(p.time, append([]float64(nil), x.Classes[c].Seconds...))
	}
	return p
}

// roots returns the root of every set, ascending.
func (p *proof) roots() (roots []int32) {
	for b := range p.sets {
		if p.sets[b] == int32(b) {
			roots = append(roots, int32(b))
		}
	}
	return roots
}

// holds reports whether some device can have the set of root r with the
// communication it is forced to and more.
func (p *proof) holds(r int32, more float64) bool {
	for c := range p.x.Classes {
		class := &p.x.Classes[c]
		load := p.time[c][r]
		if !class.CPU {
			load += p.forced[r] + more
		}
		if load <= p.t && p.bytes[r] <= class.Memory {
			return true
		}
	}
	return false
}

// round draws what follows at once. again asks for another round. It means nothing where ctx
// has ended.
func (p *proof) round(ctx context.Context) (again, contradiction bool) {
	nets := merge(ctx, p.x.Nets, p.sets.Root)
	clear(p.forced)
	p.cut = 0
	isCut := make([]bool, len(nets))
	for k, n := range nets {
		if p.together(n.Blocks) {
			continue
		}
		isCut[k] = true
		p.cut += n.Seconds
		for _, r := range n.Blocks {
			p.forced[r] += n.Seconds
		}
	}
	for _, r := range p.roots() {
		if !p.holds(r, 0) {
			return false, true
		}
	}
	for k, n := range nets {
		if isCut[k] {
			continue
		}
		for _, r := range n.Blocks {
			if p.holds(r, n.Seconds) {
				continue
			}
			for _, q := range n.Blocks[1:] {
				p.join(n.Blocks[0], q)
			}
			return true, false // forced communication must be counted anew
		}
	}
	return false, false
}

// together reports whether some device could have all the sets.
func (p *proof) together(sets []int32) bool {
	for c := range p.x.Classes {
		var load float64
		var bytes int64
		for _, r := range sets {
			load += p.time[c][r]
			bytes += p.bytes[r]
		}
		if load <= p.t && bytes <= p.x.Classes[c].Memory {
			return true
		}
	}
	return false
}

func (p *proof) join(a, b int32) {
	a, b = p.sets.Root(a), p.sets.Root(b)
	if a == b {
		return
	}
	a, b = min(a, b), max(a, b)
	p.sets.Join(a, b)
	for c := range p.time {
		p.time[c][a] += p.time[c][b]
	}
	p.bytes[a] += p.bytes[b]
}

// overfull reports that the sets are too many or too much for the devices.
func (p *proof) overfull() bool {
	// Sets of which no two go together, chosen greedily, largest first.
	roots := p.roots()
	slices.SortStableFunc(roots, func(a, b int32) int { return cmp.Compare(p.time[0][b], p.time[0][a]) })
	var apart []int32
next:
	for _, r := range roots {
		for _, q := range apart {
			if p.together([]int32{r, q}) {
				continue next
			}
		}
		if apart = append(apart, r); len(apart) > p.x.NumDevices() {
			return true
		}
	}
	// A net that is cut is paid for by two accelerators where there is no CPU, by one beside
	// a CPU, and between two CPUs by nobody.
	payers := 2
	for c := range p.x.Classes {
		if p.x.Classes[c].CPU {
			payers -= len(p.x.Classes[c].Devices)
		}
	}
	work, capacity := p.x.work(float64(max(0, payers)) * p.cut)
	return work > capacity*p.t
}
