package sim

import (
	"slices"

	"placer/graph/fuse"
	"placer/plan"
)

// A fused run is a run of another graph, whose ops are the kernels. The event
// loop does not know of fusion: Evaluate costs what it does without.

// fusion is what a simulator needs for fused runs. It comes with the first one.
type fusion struct {
	fuser  *fuse.Fuser
	run    *Simulator // of the kernels
	head   []int32    // [N] the kernels that run's tables hold, or empty
	k      kernels
	device []uint8 // [K]
	rank   []int32 // [K]

	number      []int32   // [N] scratch: kernel of each head
	next        []int32   // [N] scratch: where each kernel's next op goes
	rowOf, last []int32   // scratch of lay
	takes       []float64 // [N] of Kernels; nil before the first
}

func newFusion(s *Simulator) *fusion {
	n := s.n
	t := s.tables
	// Kernels never have more of anything than ops have, but for rows.
	t.ops, t.pending, t.first = make([]opRow, n+1), make([]uint32, n), make([]int32, n+1)
	t.messages, t.producer = make([]message, 0, len(s.messages)), make([]int32, 0, len(s.producer))
	t.use, t.program = make([]int32, 0, len(s.use)), make([]int32, 0, 4*len(s.messages)+len(s.program))
	rows := t.layout.mostRows()
	t.rowSize, t.rowShare, t.views = make([]int64, rows), make([]int32, rows), make([]int32, len(t.layout.bytes))
	t.residents, t.sources = make([]resident, 0, len(s.residents)), make([]int32, 0, n)
	if t.receipts != nil {
		t.readAt, t.reads = make([]int32, n+1), make([]int32, 0, len(s.reads))
	}
	t.equal = true // the rows have the times of the devices that the kernels are on
	return &fusion{
		fuser: fuse.NewFuser(s.rules()), run: newSimulator(&t), head: make([]int32, 0, n),
		k:      kernels{of: make([]int32, n), at: make([]int32, n+1), ops: make([]int32, n)},
		device: make([]uint8, n), rank: make([]int32, n), number: make([]int32, n), next: make([]int32, n),
		rowOf: make([]int32, len(t.layout.bytes)), last: make([]int32, max(n, len(t.layout.bytes))+1),
	}
}

// evaluateFused is Evaluate of kernels. A kernel's priority is the lowest value among
// its ops, its id the lowest id.
func (s *Simulator) evaluateFused(d plan.Decision) plan.Score {
	f := s.fuse(d.Device, d.Priority, d.Fusion)
	kernels := plan.Decision{Device: f.device[:f.k.n]}
	if d.Priority != nil {
		kernels.Priority = f.rank[:f.k.n]
	}
	return f.run.Evaluate(kernels)
}

// fuse prepares a fused run.
func (s *Simulator) fuse(device []uint8, priority []int32, fusion []uint8) *fusion {
	if s.fused == nil {
		s.fused = newFusion(s)
	}
	f := s.fused
	head := f.fuser.Fuse(device, fusion)
	same := slices.Equal(head, f.head)
	if !same {
		f.head = append(f.head[:0], head...)
		f.group()
		f.run.lay(s.layout, &f.k, f.rowOf, f.last)
		f.run.rows = f.run.rows[:len(f.run.rowSize)]
		f.run.layRows()
	}
	for k := range f.k.n {
		f.device[k] = device[f.k.ops[f.k.at[k]]]
	}
	if !same || !s.equal {
		for k := range f.k.n {
			f.run.ops[k].seconds = s.kernelSeconds(f.k.of, int32(k), f.k.ops[f.k.at[k]:f.k.at[k+1]], int(f.device[k]))
		}
	}
	if priority != nil {
		for k := range f.k.n {
			rank := priority[f.k.ops[f.k.at[k]]]
			for _, i := range f.k.ops[f.k.at[k]+1 : f.k.at[k+1]] {
				rank = min(rank, priority[i])
			}
			f.rank[k] = rank
		}
	}
	return f
}

// group numbers the kernels and lists their ops.
func (f *fusion) group() {
	n := len(f.head)
	for i := range f.number {
		f.number[i] = none
	}
	k := &f.k
	k.n = 0
	for i, h := range f.head {
		to := f.number[h]
		if to == none {
			to = int32(k.n)
			f.number[h] = to
			f.next[to] = 0
			k.n++
		}
		k.of[i] = to
		f.next[to]++
	}
	at := int32(0)
	for to := range k.n {
		k.at[to], at, f.next[to] = at, at+f.next[to], at
	}
	k.at[k.n] = int32(n)
	for i, to := range k.of {
		k.ops[f.next[to]] = int32(i)
		f.next[to]++
	}
}

// kernelSeconds returns the time of kernel i, which has ops, ascending, on device d:
// fuse.Traffic and KernelCostModel say what it is. of is the kernel of each op, [N].
func (t *tables) kernelSeconds(of []int32, i int32, ops []int32, d int) float64 {
	if len(ops) == 1 {
		return t.seconds[d][ops[0]]
	}
	l, parts := t.layout, t.layout.parts[d]
	compute, memory, launch := 0.0, 0.0, 0.0
	for _, m := range ops {
		p := &parts[m]
		compute += float64(p.Compute)
		memory += float64(float64(l.opTraffic(of, i, m)) * p.PerByte)
		launch = max(launch, float64(p.Launch))
	}
	return max(compute, memory) + launch
}

// opTraffic is fuse.Traffic of op m of kernel i.
func (l *layout) opTraffic(of []int32, i, m int32) (bytes int64) {
	if l.view[m] {
		return 0
	}
	bytes = l.traffic[m]
	for _, t := range l.in[l.inAt[m]:l.inAt[m+1]] {
		if of[l.maker(of, i, t)] == i {
			bytes -= l.bytes[t]
		}
	}
	for t := l.outAt[m]; t < l.outAt[m+1]; t++ {
		if own, leaves := l.fate(of, i, t); own && !leaves && !l.resident[t] {
			bytes -= l.bytes[t]
		}
	}
	return max(bytes, 0)
}

// maker returns the op that makes the data of tensor t, views of kernel i passed
// by.
func (l *layout) maker(of []int32, i, t int32) int32 {
	p := l.producer[t]
	for l.view[p] && of[p] == i {
		p = l.producer[l.in[l.inAt[p]]]
	}
	return p
}

// fate reports whether kernel i, which makes tensor t, reads it, and whether its
// data is read outside, by its own name or that of a view.
func (l *layout) fate(of []int32, i, t int32) (own, leaves bool) {
	for _, v := range l.use[l.useAt[t]:l.useAt[t+1]] {
		if of[v] != i {
			leaves = leaves || !l.readsShape[v]
			continue
		}
		own = true
		if !l.view[v] || l.in[l.inAt[v]] != t {
			continue
		}
		for o := l.outAt[v]; o < l.outAt[v+1] && !leaves; o++ {
			_, leaves = l.fate(of, i, o)
		}
	}
	return own, leaves
}

// keeps reports whether kernel i, which makes tensor t, reads it and nothing
// outside reads more than its shape: it is not held in memory.
func (l *layout) keeps(of []int32, i, t int32) bool {
	own := false
	for _, v := range l.use[l.useAt[t]:l.useAt[t+1]] {
		if of[v] == i {
			own = true
		} else if !l.readsShape[v] {
			return false
		}
	}
	return own
}
