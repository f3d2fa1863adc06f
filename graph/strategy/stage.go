package strategy

import (
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/units"
)

// mostBlocks bounds the blocks of a graph whose layers form no chain.
const mostBlocks = 256

// Blocks are the pieces of a model that a pipeline cuts between: its layers where its
// forward edges lead from layers to the same or later ones, else its modules where they do so, else
// its chains, else stretches of its forward ops in topological order.
type Blocks struct {
	of []int32 // [N] block of each op of a pass; of what is there once, where it is read first
	n  int
	m  *Model
	// byLayer says that blocks are the graph's layers.
	byLayer bool
}

// NewBlocks returns the blocks of m. Stretches are of equal seconds, [N], as near as ops allow.
func NewBlocks(m *Model, seconds []float64) *Blocks {
	g := m.Micro
	b := &Blocks{of: make([]int32, g.NumOps()), m: m}
	if !b.layers() && !b.modules() && !b.chains(seconds, unit.Chain) {
		b.stretches(seconds)
	}
	b.settle()
	return b
}

// Len returns the number of blocks.
func (b *Blocks) Len() int { return b.n }

// AreLayers reports whether blocks are the layers that the graph states.
func (b *Blocks) AreLayers() bool { return b.byLayer }

// layers takes the graph's layers, from 0, if its forward edges allow.
func (b *Blocks) layers() bool {
	g := b.m.Micro
	low, high := int32(math.MaxInt32), int32(0)
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Phase != graph.Forward || b.m.once[i] {
			continue
		}
		if o.Layer == 0 {
			return false
		}
		low, high = min(low, o.Layer), max(high, o.Layer)
		for p := range g.Predecessors(i) {
			if !b.m.once[p] && g.Op(p).Layer > o.Layer {
				return false
			}
		}
	}
	if high <= low {
		return false
	}
	for i := range graph.OpID(g.NumOps()) {
		b.of[i] = max(0, g.Op(i).Layer-low)
	}
	b.n, b.byLayer = int(high-low+1), true
	return true
}

// stretches cuts the forward ops of micro-batches by equal time, or by their number where none
// takes any.
func (b *Blocks) stretches(seconds []float64) {
	g := b.m.Micro
	total, n := 0.0, 0
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase == graph.Forward && !b.m.once[i] {
			total += seconds[i]
			n++
		}
	}
	b.n = max(1, min(mostBlocks, n))
	share := func(i graph.OpID) float64 { return seconds[i] / total }
	if total == 0 {
		share = func(graph.OpID) float64 { return 1 / float64(n) }
	}
	before := 0.0
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase == graph.Forward && !b.m.once[i] {
			b.of[i] = int32(min(float64(b.n-1), float64(b.n)*before))
			before += share(i)
		}
	}
}

// settle makes forward passes lead from blocks to the same or later ones, backward passes
// to the same or earlier ones, and puts what is there once where it is read first.
func (b *Blocks) settle() {
	g, m := b.m.Micro, b.m
	for i := range graph.OpID(g.NumOps()) {
		if m.once[i] {
			continue
		}
		switch o := g.Op(i); o.Phase {
		case graph.Forward:
			for p := range g.Predecessors(i) {
				if !m.once[p] {
					b.of[i] = max(b.of[i], b.of[p])
				}
			}
		case graph.Backward:
			k := int32(b.n - 1)
			if o.Forward != graph.None && !m.once[o.Forward] {
				k = b.of[o.Forward]
			}
			for p := range g.Predecessors(i) {
				if !m.once[p] && g.Op(p).Phase == graph.Backward {
					k = min(k, b.of[p])
				}
			}
			b.of[i] = k
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if m.state[i] {
			b.of[i] = b.reader(i)
		}
	}
	b.settleOnce()
}

// reader returns the first block in which an op of a pass reads op i.
func (b *Blocks) reader(i graph.OpID) int32 {
	g, at := b.m.Micro, b.of[i]
	t, end := g.Outputs(i)
	for first := true; t < end; t++ {
		for _, v := range g.Consumers(t) {
			if first || b.of[v] < at {
				at, first = b.of[v], false
			}
		}
	}
	return at
}

// settleOnce places what is there once: groups and holders with their first reader in
// the forward pass, updates with their group, the rest with the largest tensor that they read.
func (b *Blocks) settleOnce() {
	g, m := b.m.Micro, b.m
	const unset = int32(math.MaxInt32)
	group := map[int32]int32{}
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- {
		o := g.Op(i)
		if !m.once[i] {
			continue
		}
		at := unset
		t, end := g.Outputs(i)
		for ; t < end; t++ {
			for _, v := range g.Consumers(t) {
				if m.once[v] && g.Op(v).Phase == graph.Update && o.Phase != graph.Update {
					continue // its group says more
				}
				at = min(at, b.of[v])
			}
		}
		b.of[i] = at
		if o.Group > 0 && o.Phase != graph.Update && at != unset {
			if k, ok := group[o.Group]; !ok || at < k {
				group[o.Group] = at
			}
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if k, ok := group[o.Group]; ok && o.Group > 0 {
			if m.once[i] {
				b.of[i] = k
			} else {
				b.join(i, k)
			}
			continue
		}
		if !m.once[i] || o.Phase != graph.Update && b.of[i] != unset {
			continue
		}
		at, most := int32(-1), units.Bytes(-1)
		for _, t := range g.Inputs(i) { // with the largest that it reads
			if x := g.Tensor(t); b.of[x.Producer] != unset && x.Bytes > most {
				at, most = b.of[x.Producer], x.Bytes
			}
		}
		if at >= 0 {
			b.of[i] = at
		} else if b.of[i] == unset || b.of[i] < 0 {
			b.of[i] = 0
		}
	}
}

// join puts op i of a pass, which is in a group of what is there once, as near to the
// group's block k as the order of passes allows: a recomputed view of a weight.
func (b *Blocks) join(i graph.OpID, k int32) {
	g, m := b.m.Micro, b.m
	low, high := int32(0), int32(b.n-1)
	backward := g.Op(i).Phase == graph.Backward
	for p := range g.Predecessors(i) {
		switch {
		case m.once[p] || (g.Op(p).Phase == graph.Backward) != backward:
		case backward:
			high = min(high, b.of[p])
		default:
			low = max(low, b.of[p])
		}
	}
	t, end := g.Outputs(i)
	for ; t < end; t++ {
		for _, v := range g.Consumers(t) {
			switch {
			case m.once[v] || (g.Op(v).Phase == graph.Backward) != backward:
			case backward:
				low = max(low, b.of[v])
			default:
				high = min(high, b.of[v])
			}
		}
	}
	b.of[i] = max(low, min(high, k))
}

// Loads are what a block costs: seconds of both passes, resident bytes, and bytes of the
// forward pass that the backward pass reads.
type Loads struct {
	Seconds            [][]float64 // [P][blocks] on the device of each stage
	Resident, Retained []units.Bytes
	tied               []tiedLoad
}

// tiedLoad is what a weight that several blocks read takes on each stage that has one of them, which
// Resident has in the first alone.
type tiedLoad struct {
	home    int
	readers []int
	bytes   units.Bytes
}

// beside returns what tied weights take of a stage of blocks from up to to, beside Resident.
func (l *Loads) beside(from, to int) (b units.Bytes) {
	in := func(k int) bool { return from <= k && k < to }
	for _, t := range l.tied {
		if !in(t.home) && slices.ContainsFunc(t.readers, in) {
			b += t.bytes
		}
	}
	return b
}

// tiedLoads finds weights that several blocks read. With several micro-batches gradients have buffers.
func (b *Blocks) tiedLoads(micro int) (tied []tiedLoad) {
	g, m := b.m.Micro, b.m
	blocks := make([][]int, g.NumOps()) // whose forward passes read what is there once, a view of it or a cast
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- {
		o := g.Op(i)
		if !m.once[i] || o.Phase == graph.Update {
			continue
		}
		for t, end := g.Outputs(i); t < end; t++ {
			for _, v := range g.Consumers(t) {
				if !m.once[v] && g.Op(v).Phase == graph.Forward {
					blocks[i] = append(blocks[i], int(b.of[v]))
				}
				if copies(g.Op(v)) {
					blocks[i] = append(blocks[i], blocks[v]...)
				}
			}
		}
		slices.Sort(blocks[i])
		blocks[i] = slices.Compact(blocks[i])
		if o.Params == 0 || len(blocks[i]) < 2 {
			continue
		}
		l := tiedLoad{int(b.of[i]), blocks[i], o.Resident}
		for v := range graph.OpID(g.NumOps()) {
			if v != i && o.Group > 0 && m.once[v] && g.Op(v).Group == o.Group {
				l.bytes += g.Op(v).Resident
			}
		}
		if micro > 1 && Trains(g) {
			l.bytes += g.Tensor(first(g, i)).Bytes
		}
		tied = append(tied, l)
	}
	return tied
}

// Loads adds up the blocks of a step of micro micro-batches. seconds, [P][N], are the times of
// the micro-batch's ops on the device of each stage.
func (b *Blocks) Loads(seconds [][]float64, micro int) Loads {
	g := b.m.Micro
	l := Loads{Seconds: make([][]float64, len(seconds)), Resident: make([]units.Bytes, b.n), Retained: make([]units.Bytes, b.n)}
	for s := range seconds {
		l.Seconds[s] = make([]float64, b.n)
	}
	for i := range graph.OpID(g.NumOps()) {
		k := b.of[i]
		if b.m.once[i] {
			l.Resident[k] += g.Op(i).Resident
			continue
		}
		l.Resident[k] += units.Bytes(micro) * g.Op(i).Resident
		for s := range seconds {
			l.Seconds[s][k] += seconds[s][i]
		}
		if g.Op(i).Phase != graph.Forward {
			continue
		}
		t, end := g.Outputs(i)
		for ; t < end; t++ {
			for _, v := range g.Consumers(t) {
				if g.Op(v).Phase == graph.Backward {
					l.Retained[k] += g.Tensor(t).Bytes
					break
				}
			}
		}
	}
	l.tied = b.tiedLoads(micro)
	for _, t := range b.m.gradients() { // buffers that sum gradients
		if b.m.ruleOf(t) == summed {
			l.Resident[b.of[g.Consumers(t)[len(g.Consumers(t))-1]]] += g.Tensor(t).Bytes
		}
	}
	return l
}

// Cut returns the first block of each of n stages, [n], such that the slowest takes as
// little time as any cut's: the dynamic program over cuts of a chain, exact. Stage k is
// on the device k mod P of l. Cuts whose stages hold more than room, [P], are taken where
// there is no other; held says how many micro-batches a stage keeps.
func (b *Blocks) Cut(l Loads, n int, room []units.Bytes, held func(stage int) int) ([]int, error) {
	if n > b.n {
		return nil, fmt.Errorf("graph %s: %d stages, its layers can be cut into %d", b.m.Micro.Name(), n, b.n)
	}
	p := len(l.Seconds)
	sums := make([][]float64, p)
	for s := range sums {
		sums[s] = make([]float64, b.n+1)
		for k, x := range l.Seconds[s] {
			sums[s][k+1] = sums[s][k] + x
		}
	}
	resident, retained := make([]float64, b.n+1), make([]float64, b.n+1)
	for k := range b.n {
		resident[k+1] = resident[k] + float64(l.Resident[k])
		retained[k+1] = retained[k] + float64(l.Retained[k])
	}
	// A stage that lacks memory costs more than any that does not.
	const heavy = 1e9
	cost := func(stage, from, to int) float64 {
		d := stage % p
		x := sums[d][to] - sums[d][from]
		if room != nil {
			need := float64(l.beside(from, to)) + float64(n/p)*(resident[to]-resident[from]) + float64(held(stage))*(retained[to]-retained[from])
			if over := need - float64(room[d]); over > 0 {
				x += heavy * (1 + over/float64(room[d]))
			}
		}
		return x
	}
	best, cut := make([][]float64, n+1), make([][]int, n+1)
	for j := range best {
		best[j], cut[j] = make([]float64, b.n+1), make([]int, b.n+1)
		for k := range best[j] {
			best[j][k] = math.Inf(1)
		}
	}
	best[0][0] = 0
	for j := 1; j <= n; j++ {
		for k := j; k <= b.n; k++ {
			for from := j - 1; from < k; from++ {
				if x := max(best[j-1][from], cost(j-1, from, k)); x < best[j][k] {
					best[j][k], cut[j][k] = x, from
				}
			}
		}
	}
	bounds := make([]int, n)
	for j, k := n, b.n; j > 0; j-- {
		k = cut[j][k]
		bounds[j-1] = k
	}
	return bounds, nil
}

// chunks returns the chunk of every op, [N], under cuts at the blocks bounds.
func (b *Blocks) chunks(bounds []int) []int32 {
	chunk := make([]int32, b.n)
	for c, from := range bounds {
		for k := from; k < b.n; k++ {
			chunk[k] = int32(c)
		}
	}
	of := make([]int32, len(b.of))
	for i, k := range b.of {
		of[i] = chunk[k]
	}
	return of
}

// Stages returns the stage of every op of the micro-batch's graph, [N], of a pipeline of p, under
// cuts at the blocks bounds, one for each chunk.
func (b *Blocks) Stages(bounds []int, p int) []uint8 {
	of := b.chunks(bounds)
	stage := make([]uint8, len(of))
	for i, c := range of {
		stage[i] = uint8(int(c) % p)
	}
	return stage
}
