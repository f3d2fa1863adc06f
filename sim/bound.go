package sim

import (
	"context"

	"placer/graph"
	"placer/units"
)

// Bound is a proven lower bound of the step time of every feasible plan. Its
// parts are bounds too; it is their maximum.
type Bound struct {
	Seconds units.Seconds
	Parts   []BoundPart // all that apply, in a fixed order
	// Impossible says that no plan is feasible: an op, a co-location group or the
	// whole graph needs more resident memory than there is.
	Impossible bool
}

// BoundPart is one lower bound.
type BoundPart struct {
	Name    string
	Seconds units.Seconds
}

// Names of the parts of a bound.
const (
	BoundCriticalPath = "critical path" // every op on its fastest device, no transfers
	BoundWork         = "work"          // total work over total rate
	BoundWindow       = "window"        // work, less what cannot run early or late
	BoundGroup        = "group"         // ops that must share a device run one by one
	BoundMemory       = "memory"        // work, where fast devices cannot hold everything
	BoundSplit        = "split"         // one device for everything, or one transfer
	BoundTransfers    = "transfers"     // critical path with transfers that cannot be avoided
	BoundLateWork     = "late work"     // window between the heads and tails of that path
)

// Gap returns t over the bound, less 1.
func (b *Bound) Gap(t units.Seconds) float64 { return float64(t)/float64(b.Seconds) - 1 }

// Tightest returns the first part that equals the bound.
func (b *Bound) Tightest() BoundPart {
	for _, p := range b.Parts {
		if p.Seconds == b.Seconds {
			return p
		}
	}
	return BoundPart{}
}

// bounder holds what the parts share.
type bounder struct {
	*tables
	fused   bool // ops may be fused: a result may be known by its shape alone
	classes []deviceClass
	items   []boundItem
	itemOf  []int32   // [N]
	fastest []float64 // [N] least seconds of an op on a device that can hold its item
	head    []float64 // [N] longest path of fastest times before the op
	tail    []float64 // [N] the same after it
}

// deviceClass is a set of devices that are equal to a bound.
type deviceClass struct {
	device int // one of them
	count  float64
	memory float64
}

// boundItem is a set of ops that must share a device.
type boundItem struct {
	ops      int
	seconds  []float64 // [classes] sum; +Inf where it does not fit
	resident float64
}

// LowerBound returns a bound of the step time of every plan without fusion that
// is feasible in memory (of every plan without fusion, if memory is not counted).
// It takes up to some seconds for a hundred thousand ops. When ctx ends, it is that of the
// parts proven by then.
//
// Copies that occupy the sender, and receipts, only add to what a device has to do
// and to when a tensor is there: such a run, with the copies left out and each op in
// the last part of its stretch, keeps all that the proofs use, that a device runs one
// op at a time, that an op follows its predecessors, and that a tensor crosses in no
// less than the fastest route takes.
//
// Each part has its proof at its function. The last factor covers rounding: sums
// of N terms, in the bound and in the simulator's clock, err by less than
// N 2^-53 of their value each.
func (s *Simulator) LowerBound(ctx context.Context) *Bound { return s.tables.bound(ctx, false, true) }

// QuickLowerBound is LowerBound without the parts that know of transfers
// (BoundTransfers, BoundLateWork). It takes some milliseconds for every ten thousand ops.
func (s *Simulator) QuickLowerBound() *Bound {
	return s.tables.bound(context.Background(), false, false)
}

// bound returns the bound of plans with fusion or without; with transfers it has the parts
// that know of them, which hold without fusion alone: fused ops may take less than one
// after the other. When ctx ends, no further part is proven.
func (t *tables) bound(ctx context.Context, fused, transfers bool) *Bound {
	b := newBounder(t, fused)
	out := &Bound{}
	for i := range b.fastest {
		if b.fastest[i] == inf {
			return &Bound{Impossible: true}
		}
	}
	shrink := 1 - float64(t.n+64)*0x1p-50
	add := func(name string, seconds float64, applies bool) {
		if applies {
			part := BoundPart{name, units.Seconds(seconds * shrink)}
			out.Parts = append(out.Parts, part)
			out.Seconds = max(out.Seconds, part.Seconds)
		}
	}
	path := b.criticalPath()
	add(BoundCriticalPath, path, true)
	if ctx.Err() != nil {
		return out
	}
	weight, work := b.work()
	add(BoundWork, work, true)
	if ctx.Err() != nil {
		return out
	}
	add(BoundWindow, b.window(weight, path), true)
	if ctx.Err() != nil {
		return out
	}
	group, has := b.group()
	add(BoundGroup, group, has)
	if t.cfg.Memory {
		memory, possible := b.memory(weight)
		if !possible {
			return &Bound{Impossible: true}
		}
		add(BoundMemory, memory, memory > work)
	}
	if ctx.Err() != nil {
		return out
	}
	split, possible := b.split()
	if !possible {
		return &Bound{Impossible: true}
	}
	add(BoundSplit, split, true)
	if transfers && !fused && b.cluster(ctx) {
		path = b.criticalPath()
		add(BoundTransfers, path, true)
		add(BoundLateWork, b.window(weight, path), true)
	}
	return out
}

func newBounder(t *tables, fused bool) *bounder {
	b := &bounder{tables: t, fused: fused, itemOf: make([]int32, t.n), fastest: make([]float64, t.n)}
	for d := range t.d {
		b.classify(d)
	}
	group := map[int32]int32{}
	for i := range t.n {
		op := t.g.Op(graph.OpID(i))
		k, known := group[op.Group]
		if op.Group == 0 || !known {
			k = int32(len(b.items))
			b.items = append(b.items, boundItem{seconds: make([]float64, len(b.classes))})
			group[op.Group] = k
		}
		b.itemOf[i] = k
		it := &b.items[k]
		it.ops++
		it.resident += float64(op.Resident)
		for c, class := range b.classes {
			it.seconds[c] += t.seconds[class.device][i]
		}
	}
	for k := range b.items {
		for c, class := range b.classes {
			if t.cfg.Memory && b.items[k].resident > class.memory {
				b.items[k].seconds[c] = inf
			}
		}
	}
	for i := range t.n {
		b.fastest[i] = inf
		for c, class := range b.classes {
			if b.items[b.itemOf[i]].seconds[c] != inf {
				b.fastest[i] = min(b.fastest[i], t.seconds[class.device][i])
			}
		}
	}
	b.levels()
	return b
}

func (b *bounder) classify(d int) {
	memory := float64(b.m.Devices[d].Memory)
	for c := range b.classes {
		x := &b.classes[c]
		if &b.seconds[x.device][0] == &b.seconds[d][0] && (x.memory == memory || !b.cfg.Memory) {
			x.count++
			return
		}
	}
	b.classes = append(b.classes, deviceClass{d, 1, memory})
}

// predecessors calls f for every op that must end before op i starts, with the
// bytes that it sends to i. Where transfers occupy the sender, control dependencies
// hold on one device alone: those within a co-location group are certain.
func (b *bounder) predecessors(i int, f func(p graph.OpID, bytes int64)) {
	for _, t := range b.g.Inputs(graph.OpID(i)) {
		bytes := int64(b.g.Tensor(t).Bytes)
		if b.fused && b.layout.readsShape[i] {
			bytes = 0
		}
		f(b.g.Tensor(t).Producer, bytes)
	}
	for _, p := range b.g.Control(graph.OpID(i)) {
		if b.receipts == nil || b.itemOf[p] == b.itemOf[i] {
			f(p, 0)
		}
	}
}

func (b *bounder) levels() {
	b.head, b.tail = make([]float64, b.n), make([]float64, b.n)
	for i := range b.n {
		b.predecessors(i, func(p graph.OpID, _ int64) { b.head[i] = max(b.head[i], b.head[p]+b.fastest[p]) })
	}
	for i := b.n - 1; i >= 0; i-- {
		b.predecessors(i, func(p graph.OpID, _ int64) { b.tail[p] = max(b.tail[p], b.tail[i]+b.fastest[i]) })
	}
}

// criticalPath: an op starts no earlier than the ops of any path before it take,
// each on its fastest device and without transfers.
func (b *bounder) criticalPath() (seconds float64) {
	for i := range b.n {
		seconds = max(seconds, b.head[i]+b.fastest[i]+b.tail[i])
	}
	return seconds
}

// group: the ops of a co-location group run one by one on one device; none of
// them starts before its head, and after the last one its tail has still to run.
func (b *bounder) group() (seconds float64, has bool) {
	head, tail := make([]float64, len(b.items)), make([]float64, len(b.items))
	for k := range head {
		head[k], tail[k] = inf, inf
	}
	for i, k := range b.itemOf {
		head[k], tail[k] = min(head[k], b.head[i]), min(tail[k], b.tail[i])
	}
	for k, it := range b.items {
		if it.ops < 2 {
			continue
		}
		least := inf
		for _, s := range it.seconds {
			least = min(least, s)
		}
		has, seconds = true, max(seconds, head[k]+least+tail[k])
	}
	return seconds, has
}
