package unit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"placer/graph"
)

const (
	// chainShare is the share of the step's time that a stretch of cells stands
	// for, with their gradients and weights, and so about what a chain does.
	chainShare = 1.0 / 20
	// heavyShare is the share of the step's time above which an op that takes longer
	// than most products starts a cell.
	heavyShare = 1.0 / 100
)

// finder holds the state of one Find.
type finder struct {
	g       *graph.Graph
	n       int
	share   float64 // of the step's time that a stretch of cells stands for
	seconds []float64
	total   float64
	heavy   float64
	class   []graph.Class // [N]
	// phased says that ops know their phase.
	phased      bool
	constant    []bool  // [N] depends on constants alone
	isRead      []bool  // [N] its outputs are a variable's value
	index       []bool  // [N] makes the indices of a family's lookups
	family      []int32 // [N] weights family, or -1
	numFamilies int32
	kindNumber  map[graph.Kind]int32
}

// Find returns the units of g. seconds, [N], are op times on a typical device;
// they only decide what is heavy. It fails when they are not finite or negative.
// It keeps no argument.
func Find(g *graph.Graph, seconds []float64) (*Hierarchy, error) {
	return findAt(g, seconds, chainShare)
}

// findAt is Find with chains that stand for about share of the step's time.
func findAt(g *graph.Graph, seconds []float64, share float64) (*Hierarchy, error) {
	n := g.NumOps()
	if len(seconds) != n {
		panic(fmt.Sprintf("unit: %d times for %d ops", len(seconds), n))
	}
	f := &finder{g: g, n: n, share: share, seconds: seconds, class: make([]graph.Class, n), isRead: make([]bool, n), index: make([]bool, n), kindNumber: map[graph.Kind]int32{}}
	classOf := map[graph.Kind]graph.Class{}
	for i := range n {
		o := g.Op(graph.OpID(i))
		c, ok := classOf[o.Kind]
		if !ok {
			c = o.Kind.Class()
			classOf[o.Kind] = c
		}
		f.class[i] = c
		f.phased = f.phased || o.Phase != graph.Forward
		if s := seconds[i]; s < 0 || math.IsInf(s, 0) || math.IsNaN(s) {
			return nil, fmt.Errorf("units of %s: op %d (%s) takes %v s", g.Name(), i, o.Name, s)
		}
		f.total += seconds[i]
	}
	f.heavy = f.heaviness()
	f.constant = f.constants()
	f.families()
	return f.assemble(), nil
}

// heaviness returns the time from which an op starts a cell whatever its kind.
func (f *finder) heaviness() float64 {
	sum, count := 0.0, 0.0
	for i, c := range f.class {
		if c == graph.ClassGEMM || c == graph.ClassConv {
			sum += f.seconds[i]
			count++
		}
	}
	h := max(f.total*heavyShare, sum/max(count, 1))
	if h == 0 {
		return math.Inf(1)
	}
	return h
}

// labels numbers the cells, segments and chains that ops belong to, [N] each.
type labels struct {
	cell, segment, chain []int32
	next                 [3]int32
	// Cells from backward on compute gradients, those from weights on hold
	// variables, those from apart on are ops without edges.
	backward, weights, apart int32
}

// assemble cuts both directions and joins the parts to one hierarchy.
func (f *finder) assemble() *Hierarchy {
	var fwdOps, bwdOps []graph.OpID
	for i := range f.n {
		switch {
		case f.family[i] >= 0 || f.loose(graph.OpID(i)):
		case f.g.Op(graph.OpID(i)).Phase == graph.Forward:
			fwdOps = append(fwdOps, graph.OpID(i))
		default:
			bwdOps = append(bwdOps, graph.OpID(i))
		}
	}
	where := make([]int32, f.n)
	for i := range where {
		where[i] = -1
	}
	fwd, bwd := newFlow(f.g, fwdOps, where), newFlow(f.g, bwdOps, where)
	fc, nf := f.cut(fwd)
	forward := make([]int32, f.n) // forward cell, or -1
	for i := range forward {
		forward[i] = -1
	}
	for k, i := range fwd.ops {
		forward[i] = fc[k]
	}
	w := f.weights(forward)
	bc, nb, known := f.mirror(bwd, forward, nf)
	if !known {
		bwd = bwd.reversed()
		bc, nb = f.cut(bwd)
	}

	// What a stretch of forward cells stands for.
	weight := make([]float64, nf)
	for k, i := range fwd.ops {
		weight[fc[k]] += f.seconds[i]
	}
	for k, i := range bwd.ops {
		if c := bc[k]; known && c < nf {
			weight[c] += f.seconds[i]
		}
	}
	for x, cells := range w.readers {
		for _, c := range cells {
			weight[c] += w.seconds[x] / float64(len(cells))
		}
	}
	fq := f.quotient(fwd, fc, nf)
	fReads := f.reading(fwd, fc, nf, w)
	fChain, fStretch := f.chains(fq, fReads, weight, f.total*f.share)
	fChain, fStretch = f.join(fwd, fc, fChain, fStretch, weight, f.total*f.share)
	fSegment := segments(fq, fChain, fStretch)

	l := newLabels(f.n)
	l.add(fwd.ops, fc, fSegment, fChain)
	l.backward = l.next[0]
	if known {
		// Counterparts get the same shape; cells without one stand alone.
		seg, ch := extend(fSegment, nb), extend(fChain, nb)
		l.add(bwd.ops, bc, seg, ch)
	} else {
		bw := make([]float64, nb)
		for k, i := range bwd.ops {
			bw[bc[k]] += f.seconds[i]
		}
		q := f.quotient(bwd, bc, nb)
		ch, st := f.chains(q, f.reading(bwd, bc, nb, w), bw, f.total*f.share)
		ch, st = f.join(bwd, bc, ch, st, bw, f.total*f.share)
		l.add(bwd.ops, bc, segments(q, ch, st), ch)
	}
	l.weights = l.next[0]
	wSegment, wChain := w.coarsen(fSegment, fChain)
	var wOps []graph.OpID
	var wc []int32
	for i, x := range f.family {
		if x < 0 {
			continue
		}
		if c := w.inlined[x]; c >= 0 {
			l.copy(graph.OpID(i), c, fSegment[c], fChain[c])
			continue
		}
		wOps = append(wOps, graph.OpID(i))
		wc = append(wc, w.cell[x])
	}
	l.add(wOps, wc, wSegment, wChain)
	l.apart = l.next[0]
	f.addApart(l)
	f.attach(l)
	return f.finish(l, known)
}

// extend returns a with fresh numbers for the cells from len(a) to n.
func extend(a []int32, n int32) []int32 {
	next := int32(0)
	for _, x := range a {
		next = max(next, x+1)
	}
	out := slices.Clone(a)
	for int32(len(out)) < n {
		out = append(out, next)
		next++
	}
	return out
}

func newLabels(n int) *labels {
	l := &labels{cell: make([]int32, n), segment: make([]int32, n), chain: make([]int32, n)}
	for i := range n {
		l.cell[i] = -1
	}
	return l
}

// add labels ops, whose cells are cell, and the cells' segments and chains, with
// numbers not used before.
func (l *labels) add(ops []graph.OpID, cell, segment, chain []int32) {
	top := l.next
	for k, i := range ops {
		c := cell[k]
		l.cell[i], l.segment[i], l.chain[i] = l.next[0]+c, l.next[1]+segment[c], l.next[2]+chain[c]
		top[0], top[1], top[2] = max(top[0], l.cell[i]+1), max(top[1], l.segment[i]+1), max(top[2], l.chain[i]+1)
	}
	l.next = top
}

// copy labels op i as one of the first cells added.
func (l *labels) copy(i graph.OpID, cell, segment, chain int32) {
	l.cell[i], l.segment[i], l.chain[i] = cell, segment, chain
}

// like labels op i like op j, if that has labels, and reports whether i has any.
func (l *labels) like(i, j graph.OpID) bool {
	if l.cell[i] < 0 {
		l.copy(i, l.cell[j], l.segment[j], l.chain[j])
	}
	return l.cell[i] >= 0
}

// loose reports whether op i takes no part in the flow of data: constants, and
// what has no data edges.
func (f *finder) loose(i graph.OpID) bool {
	if f.constant[i] {
		return true
	}
	first, end := f.g.Outputs(i)
	for t := first; t < end; t++ {
		if len(f.g.Consumers(t)) > 0 {
			return false
		}
	}
	return len(f.g.Inputs(i)) == 0 && f.family[i] < 0
}

// attach labels the loose ops: constants like their first consumer, what waits
// for others like the last it waits for, what is waited for like the first that
// waits, anything else like the op before.
func (f *finder) attach(l *labels) {
	for i := graph.OpID(f.n - 1); i >= 0; i-- {
		first, end := f.g.Outputs(i)
		for t := first; t < end && l.cell[i] < 0; t++ {
			if cs := f.g.Consumers(t); len(cs) > 0 {
				l.like(i, cs[0])
			}
		}
	}
	for i := range graph.OpID(f.n) {
		cs := f.g.Control(i)
		for k := len(cs) - 1; k >= 0; k-- {
			l.like(i, cs[k])
		}
	}
	for i := graph.OpID(f.n - 1); i >= 0; i-- {
		for _, c := range f.g.Control(i) {
			l.like(c, i)
		}
	}
	for i := range graph.OpID(f.n) {
		if i > 0 {
			l.like(i, i-1)
		}
	}
	for i := graph.OpID(f.n - 2); i >= 0; i-- {
		l.like(i, i+1)
	}
	if l.next[0] == 0 { // a graph of loose ops alone
		clear(l.cell)
		l.next = [3]int32{1, 1, 1}
	}
}

// reading returns the weights cells that each cell of w reads, the one with most
// resident bytes first.
func (f *finder) reading(w *flow, cell []int32, n int32, ws *weights) [][]int32 {
	reads := make([][]int32, n)
	for k, i := range w.ops {
		c := cell[k]
		for _, t := range f.g.Inputs(i) {
			p := f.g.Tensor(t).Producer
			if x := f.family[p]; x >= 0 && ws.inlined[x] < 0 && f.isRead[p] {
				if y := ws.cell[x]; !slices.Contains(reads[c], y) {
					reads[c] = append(reads[c], y)
				}
			}
		}
	}
	for _, r := range reads {
		slices.SortFunc(r, func(a, b int32) int {
			return cmp.Or(cmp.Compare(ws.resident[b], ws.resident[a]), cmp.Compare(a, b))
		})
	}
	return reads
}

// finish makes the partitions and what is known of their units.
func (f *finder) finish(l *labels, known bool) *Hierarchy {
	op := make([]int32, f.n)
	first := map[int32]int32{}
	for i := range op {
		op[i] = int32(i)
		if k := f.g.Op(graph.OpID(i)).Group; k > 0 {
			if j, ok := first[k]; ok {
				op[i] = j
				// A group without variables may reach over cells.
				l.cell[i], l.segment[i], l.chain[i] = l.cell[j], l.segment[j], l.chain[j]
			} else {
				first[k] = int32(i)
			}
		}
	}
	h := &Hierarchy{}
	for lv, label := range [NumLevels][]int32{Op: op, Cell: l.cell, Segment: l.segment, Chain: l.chain} {
		h.Levels[lv] = partition(label)
	}
	cells := h.Levels[Cell]
	role := make([]Role, cells.NumUnits())
	counterpart := make([]int32, cells.NumUnits())
	unitOf := make([]int32, l.next[0]) // cell label -> unit
	for i := range unitOf {
		unitOf[i] = -1
	}
	for u, ops := range cells.Ops {
		unitOf[l.cell[ops[0]]] = int32(u)
	}
	for u, ops := range cells.Ops {
		counterpart[u] = -1
		switch c := l.cell[ops[0]]; {
		case c < l.backward:
			if p := c + l.backward; known && p < l.weights {
				counterpart[u] = unitOf[p]
			}
		case c < l.weights:
			role[u] = Backward
			if p := c - l.backward; known && p < l.backward {
				counterpart[u] = unitOf[p]
			}
		case c < l.apart:
			role[u] = Weights
		case f.g.Op(ops[0]).Phase != graph.Forward:
			role[u] = Backward
		}
	}
	h.Roles[Cell], h.Counterparts[Cell], h.Reads[Cell] = role, counterpart, f.cellReads(cells, role)
	h.describe(Segment)
	h.describe(Chain)
	return h
}

// cellReads lists, for each cell, the cells whose variables it reads, ascending.
func (f *finder) cellReads(cells *Partition, role []Role) [][]int32 {
	reads := make([][]int32, cells.NumUnits())
	for i, u := range cells.Of {
		for _, t := range f.g.Inputs(graph.OpID(i)) {
			q := f.g.Tensor(t).Producer
			if v := cells.Of[q]; v != u && role[u] != Weights && role[v] == Weights && f.isRead[q] && !slices.Contains(reads[u], v) {
				reads[u] = append(reads[u], v)
			}
		}
	}
	for _, r := range reads {
		slices.Sort(r)
	}
	return reads
}
