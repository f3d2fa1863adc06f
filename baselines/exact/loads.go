package exact

import (
	"cmp"
	"context"
	"math"
	"slices"

	"placer/baselines/budget"
	"placer/baselines/partition/balance"
	"placer/internal/words"
	"placer/plan"
	"placer/sim/throughput"
)

// Effort that goes into a start and a bound of the largest load before branching.
const (
	loadMoves  = 100_000 // of annealing
	loadEffort = 200_000 // of maxload's packing bound
	loadReach  = 4       // times the first bound
)

// loads is a branch and bound over placements of blocks, by the largest load.
// Letters: B blocks, D devices, E nets.
type loads struct {
	x     *throughput.Instance
	track *budget.Tracker
	order []int32   // blocks, in the order of branching
	rest  []float64 // [B+1] least compute of the blocks from the k-th on
	sizes []int64   // [B+1] their bytes

	device []uint8     // [B]
	seen   []uint64    // [E] devices that the net's placed blocks are on
	load   []float64   // [D]
	bytes  []int64     // [D]
	used   []int       // [D] blocks
	before [][]float64 // [B][D] loads before a block was placed
	trail  []touch     // changes of seen
	marks  []int       // [B] length of the trail then

	best         float64
	nodes, limit int
	stopped      bool
	wrong        bool // the evaluator follows other rules
}

// touch is a net with the devices it was on.
type touch struct {
	net int32
	was uint64
}

// loads searches for the least largest load, of the problem's own evaluator; of more than
// maxOps blocks it takes the start alone.
func (e Exact) loads(ctx context.Context, p *plan.Problem, track *budget.Tracker) (*Proof, error) {
	s := throughput.FromProblem(p)
	s.Part = nil // single ops, however many
	x, err := throughput.New(ctx, s)
	if err != nil {
		return nil, err
	}
	c := balance.Default()
	c.Moves, c.Seed = min(loadMoves, 2000*x.NumBlocks()), p.Seed
	start, reached := balance.Search(ctx, x, make([]uint8, x.NumBlocks()), c, nil)
	score := track.Try(x.Spread(start))
	if !score.Feasible() {
		reached = math.Inf(1)
	}
	proof := &Proof{}
	if ctx.Err() == nil {
		proof.Bound = x.Bound(ctx, reached, math.MaxInt)
	}
	if ctx.Err() == nil {
		proof.Bound = x.PackingBound(ctx, proof.Bound, min(reached, loadReach*proof.Bound), loadEffort)
	}
	l := &loads{x: x, track: track, best: reached, limit: e.limit(p)}
	l.wrong = score.Feasible() && math.Abs(score.Value-reached) > tolerance*reached
	switch n := x.NumBlocks(); {
	case l.cut(proof.Bound):
	case ctx.Err() != nil:
		l.stopped = true
	case n > maxOps:
		track.Note("best found: %d ops and co-location groups are too many to search, at most %d; %s", n, maxOps, gap(track.Best(), proof.Bound))
		return proof, nil
	default:
		l.begin()
		l.place(0)
	}
	l.conclude(proof)
	return proof, nil
}

// begin makes what the search of x works with.
func (l *loads) begin() {
	x := l.x
	b, d := x.NumBlocks(), x.NumDevices()
	l.order, l.rest, l.sizes = connected(x), make([]float64, b+1), make([]int64, b+1)
	l.device, l.marks, l.seen = make([]uint8, b), make([]int, b), make([]uint64, len(x.Nets))
	l.load, l.bytes, l.used = make([]float64, d), make([]int64, d), make([]int, d)
	for range b {
		l.before = append(l.before, make([]float64, d))
	}
	for k := b - 1; k >= 0; k-- {
		i := l.order[k]
		l.rest[k], l.sizes[k] = l.rest[k+1]+shortest(x, i), l.sizes[k+1]+x.Size[i]
	}
}

func shortest(x *throughput.Instance, b int32) float64 {
	t := math.Inf(1)
	for _, c := range x.Classes {
		t = min(t, c.Seconds[b])
	}
	return t
}

// connected returns the blocks so that each comes while nets tie it most to those
// before it, the longer ones first where they tie alike: loads grow early.
func connected(x *throughput.Instance) []int32 {
	n := x.NumBlocks()
	tie, done, order := make([]float64, n), make([]bool, n), make([]int32, 0, n)
	for range n {
		next := int32(-1)
		for b := range int32(n) {
			if !done[b] && (next < 0 || cmp.Or(cmp.Compare(tie[b], tie[next]), cmp.Compare(shortest(x, b), shortest(x, next))) > 0) {
				next = b
			}
		}
		done[next] = true
		order = append(order, next)
		for _, e := range x.NetsOf[next] {
			for _, b := range x.Nets[e].Blocks {
				tie[b] += x.Nets[e].Seconds
			}
		}
	}
	return order
}

// cut reports whether a load of at least bound is no better than the best.
func (l *loads) cut(bound float64) bool { return bound >= l.best*(1-tolerance) }

// place decides the k-th block and those after it.
func (l *loads) place(k int) {
	if k == len(l.order) {
		l.leaf()
		return
	}
	type child struct {
		d    int
		load float64
	}
	var children []child
	for d := range l.load {
		if !l.open(d) {
			continue
		}
		l.put(k, d)
		if !l.hopeless(k + 1) {
			children = append(children, child{d, slices.Max(l.load)})
		}
		l.take(k, d)
	}
	slices.SortStableFunc(children, func(a, b child) int { return cmp.Compare(a.load, b.load) })
	for _, c := range children {
		if l.nodes++; l.limit > 0 && l.nodes >= l.limit || l.nodes%256 == 0 && l.track.Done() {
			l.stopped = true
		}
		if l.stopped {
			return
		}
		l.put(k, c.d)
		if !l.hopeless(k + 1) { // the best may have improved
			l.place(k + 1)
		}
		l.take(k, c.d)
	}
}

// open reports whether device d may be used next: all lower ones of its class are
// in use.
func (l *loads) open(d int) bool {
	for _, e := range l.x.Classes[l.x.ClassOf[d]].Devices {
		if e < d && l.used[e] == 0 {
			return false
		}
	}
	return true
}

// put places the k-th block on device d. A net is paid for by every accelerator
// it is on as soon as it is on two devices.
func (l *loads) put(k, d int) {
	b := l.order[k]
	copy(l.before[k], l.load)
	l.marks[k] = len(l.trail)
	l.device[b] = uint8(d)
	l.used[d]++
	l.bytes[d] += l.x.Size[b]
	l.load[d] += l.x.Classes[l.x.ClassOf[d]].Seconds[b]
	for _, e := range l.x.NetsOf[b] {
		was := l.seen[e]
		if was>>d&1 != 0 {
			continue
		}
		l.trail = append(l.trail, touch{e, was})
		l.seen[e] |= 1 << d
		if was != 0 {
			l.pay(e, 1<<d)
			if was&(was-1) == 0 {
				l.pay(e, was)
			}
		}
	}
}

// pay adds net e to the loads of the accelerators in on.
func (l *loads) pay(e int32, on uint64) {
	for d := range l.load {
		if on>>d&1 != 0 && !l.x.Classes[l.x.ClassOf[d]].CPU {
			l.load[d] += l.x.Nets[e].Seconds
		}
	}
}

// take undoes put.
func (l *loads) take(k, d int) {
	b := l.order[k]
	l.used[d]--
	l.bytes[d] -= l.x.Size[b]
	copy(l.load, l.before[k])
	for _, t := range l.trail[l.marks[k]:] {
		l.seen[t.net] = t.was
	}
	l.trail = l.trail[:l.marks[k]]
}

// hopeless reports whether nothing with the first k blocks where they are is
// better than the best: by a load that only grows, by the work that is left over
// all devices, or by memory.
func (l *loads) hopeless(k int) bool {
	work, room := l.rest[k], int64(0)
	for d, t := range l.load {
		free := l.x.Classes[l.x.ClassOf[d]].Memory - l.bytes[d]
		if free < 0 || l.cut(t) {
			return true
		}
		work += t
		room += free
	}
	return room < l.sizes[k] || l.cut(work/float64(len(l.load)))
}

// leaf has a whole placement evaluated, which is better than the best.
func (l *loads) leaf() {
	if l.stopped = l.stopped || l.track.Done(); l.stopped {
		return
	}
	most := slices.Max(l.load)
	score := l.track.Try(l.x.Spread(l.device))
	if !l.x.Sums && !score.Feasible() {
		return // its sizes fit, its peaks do not
	}
	l.wrong = l.wrong || !score.Feasible() || math.Abs(score.Value-most) > tolerance*most
	l.best = min(l.best, most)
}

// conclude says what the search has shown.
func (l *loads) conclude(proof *Proof) {
	proof.Nodes = l.nodes
	best := l.track.Best()
	switch {
	case l.wrong:
		l.track.Note("best found: the evaluator follows other rules than the search, which proves nothing")
	case best.Feasible() && best.Value*(1-tolerance) <= proof.Bound:
		proof.Optimal = true
		l.track.Note("OPTIMAL over all placements: the load meets its bound, %s", words.Count(l.nodes, "node", "nodes"))
	case l.stopped:
		l.track.Note("best found: stopped after %s; %s", words.Count(l.nodes, "node", "nodes"), gap(best, proof.Bound))
	case best.Feasible():
		proof.Optimal, proof.Bound = true, best.Value*(1-tolerance)
		l.track.Note("OPTIMAL over all placements: proven with %s", words.Count(l.nodes, "node", "nodes"))
	default:
		proof.Impossible, proof.Bound = true, math.Inf(1)
		l.track.Note("INFEASIBLE: no placement fits: proven with %s", words.Count(l.nodes, "node", "nodes"))
	}
}
