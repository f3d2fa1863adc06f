package sim

import (
	"slices"

	"placer/graph"
	"placer/graph/fuse"
)

// layout is what a simulator reads of a graph, in arrays. It does not change, so
// clones share it.
type layout struct {
	g          *graph.Graph
	workspace  []int64 // [N]
	traffic    []int64 // [N] bytes that an op alone reads and writes
	view       []bool  // [N] launches nothing and passes its input on
	readsShape []bool  // [N] reads no element of its inputs
	bytes      []int64 // [T]
	resident   []bool  // [T]
	producer   []int32 // [T]
	share      []int32 // [T] tensor whose memory a view is in, or none
	viewed     []bool  // [T] some view shares its memory
	// heir is the view, as large as the tensor, that is all that reads it, or none, [T].
	heir       []int32
	inAt, in   []int32        // [N+1], distinct inputs of each op, as listed
	ctlAt, ctl []int32        // [N+1], ops that wait for each op by control dependency, ascending
	outAt      []int32        // [N+1], the first tensor of each op
	useAt, use []int32        // [T+1], consumers of each tensor, ascending
	memory     []resident     // ops with permanent memory, ascending
	parts      [][]fuse.Parts // [D][N]; devices with equal figures share a column
}

func newLayout(g *graph.Graph) *layout {
	n, nt := g.NumOps(), g.NumTensors()
	l := &layout{
		g: g, workspace: make([]int64, n), traffic: make([]int64, n), view: make([]bool, n), readsShape: make([]bool, n),
		share: make([]int32, nt), viewed: make([]bool, nt), heir: make([]int32, nt),
		bytes: make([]int64, nt), resident: make([]bool, nt), producer: make([]int32, nt),
		inAt: make([]int32, n+1), ctlAt: make([]int32, n+1), outAt: make([]int32, n+1), useAt: make([]int32, nt+1),
	}
	for t := range l.heir {
		l.heir[t] = none
	}
	for t, x := range fuse.Views(g) {
		if l.share[t] = int32(x); x == none {
			continue
		}
		l.viewed[x] = true
		if y := g.Tensor(x); len(g.Consumers(x)) == 1 && !y.Resident && y.Bytes == g.Tensor(graph.TensorID(t)).Bytes {
			l.heir[x] = int32(t)
		}
	}
	waiters := make([][]int32, n)
	for i, role := range fuse.Roles(g) {
		id := graph.OpID(i)
		o := g.Op(id)
		f, _ := graph.FactsOf(o.Kind)
		l.workspace[i], l.traffic[i] = int64(o.Workspace), int64(o.Bytes)
		l.view[i], l.readsShape[i] = role == graph.FuseView, f.ReadsShape
		if o.Resident > 0 {
			l.memory = append(l.memory, resident{int32(i), int64(o.Resident)})
		}
		for _, t := range g.Inputs(id) {
			if !slices.Contains(l.in[l.inAt[i]:], int32(t)) {
				l.in = append(l.in, int32(t))
			}
		}
		l.inAt[i+1] = int32(len(l.in))
		for _, c := range g.Control(id) {
			waiters[c] = append(waiters[c], int32(i))
		}
		first, end := g.Outputs(id)
		l.outAt[i+1] = int32(end)
		for t := first; t < end; t++ {
			x := g.Tensor(t)
			l.bytes[t], l.resident[t], l.producer[t] = int64(x.Bytes), x.Resident, int32(i)
			for _, v := range g.Consumers(t) {
				l.use = append(l.use, int32(v))
			}
			l.useAt[t+1] = int32(len(l.use))
		}
	}
	for i, w := range waiters {
		l.ctl = append(l.ctl, w...)
		l.ctlAt[i+1] = int32(len(l.ctl))
	}
	return l
}

// mostRows returns how many rows of reference counts there are at most, whatever is
// fused.
func (l *layout) mostRows() (n int) {
	for t := range l.bytes {
		if l.resident[t] || l.viewed[t] || l.share[t] != none || l.useAt[t+1]-l.useAt[t] > 1 {
			n++
		}
	}
	return n
}

// kernels says which ops make up each kernel. Kernels are numbered by their
// lowest op.
type kernels struct {
	n   int
	of  []int32 // [N] kernel of each op
	at  []int32 // [K+1] into ops
	ops []int32 // [N] ops of each kernel, ascending
}

// alone makes every op a kernel of its own.
func alone(n int) *kernels {
	k := &kernels{n: n, of: make([]int32, n), at: make([]int32, n+1), ops: make([]int32, n)}
	for i := range n {
		k.of[i], k.at[i+1], k.ops[i] = int32(i), int32(i+1), int32(i)
	}
	return k
}

// lay fills the tables of kernels k; what they hold is overwritten, their arrays
// are used again. rowOf, [T], and last, as long as the larger of N and T, are
// scratch.
func (t *tables) lay(l *layout, k *kernels, rowOf, last []int32) {
	t.n = k.n
	t.ops, t.pending, t.first = t.ops[:k.n+1], t.pending[:k.n], t.first[:k.n+1]
	clear(t.ops)
	clear(t.pending)
	t.messages, t.producer, t.use, t.program = t.messages[:0], t.producer[:0], t.use[:0], t.program[:0]
	t.rowSize, t.rowShare, t.residents, t.sources = t.rowSize[:0], t.rowShare[:0], t.residents[:0], t.sources[:0]
	t.maxSends = 0
	clear(last)
	for i := range k.n {
		row := &t.ops[i]
		t.first[i] = int32(len(t.messages))
		ops := k.ops[k.at[i]:k.at[i+1]]
		for _, m := range ops {
			row.alloc, row.free = row.alloc+l.workspace[m], row.free+l.workspace[m]
			for id := l.outAt[m]; id < l.outAt[m+1]; id++ {
				rowOf[id] = t.output(l, k, int32(i), id, last)
			}
		}
		t.control(l, k, int32(i), ops, last)
	}
	t.first[k.n] = int32(len(t.messages))
	for i := range k.n {
		if t.pending[i] == 0 {
			t.sources = append(t.sources, int32(i))
		}
	}
	for _, r := range l.memory {
		t.residents = append(t.residents, resident{k.of[r.op], r.bytes})
	}
	clear(last)
	t.encode(l, k, rowOf, last)
	if t.receipts != nil {
		t.layReads()
	}
}

// output lays out tensor id of kernel i and returns its row, or none. What the
// kernel keeps to itself takes no memory; readers of its shape get a message of no
// bytes. A view is in the memory of another tensor.
func (t *tables) output(l *layout, k *kernels, i, id int32, last []int32) (row int32) {
	users := l.use[l.useAt[id]:l.useAt[id+1]]
	size, held := l.bytes[id], l.resident[id]
	first := int32(len(t.use))
	stamp := int32(len(t.messages)) + 1
	inside, shapes := false, true
	for _, v := range users {
		to := k.of[v]
		if to == i {
			inside = true
			continue
		}
		shapes = shapes && l.readsShape[v]
		if last[to] != stamp {
			last[to] = stamp
			t.use = append(t.use, to)
		}
	}
	readers := t.use[first:]
	kept := inside && shapes
	if kept {
		size = 0
	}
	row = none
	share, inherits, bequeaths := int32(none), false, false
	if !kept && l.share[id] != none {
		share = l.shares(k, i, id)
		if inherits = l.inherits(k, share, id); inherits {
			share = none
		}
	}
	if heir := l.heir[id]; heir != none && share == none {
		bequeaths = l.inherits(k, id, heir)
	}
	counted := held || len(readers) > 1 || l.viewed[id] && !bequeaths || share != none
	if !held && !kept && share == none {
		if !inherits {
			t.ops[i].alloc += size
		}
		switch {
		case len(readers) == 0:
			t.ops[i].free += size
		case !counted && !bequeaths:
			t.ops[readers[0]].free += size
		}
	}
	if len(readers) == 0 {
		return none
	}
	if !kept && counted {
		row = int32(len(t.rowSize))
		t.rowSize, t.rowShare = append(t.rowSize, size), append(t.rowShare, share) // a row from encode on
	}
	t.emit(i, message{size: size, first: first, row: row, tensor: id})
	return row
}

// control lays out the message to what waits for the ops of kernel i.
func (t *tables) control(l *layout, k *kernels, i int32, ops []int32, last []int32) {
	first := int32(len(t.use))
	stamp := int32(len(t.messages)) + 1
	for _, m := range ops {
		for _, v := range l.ctl[l.ctlAt[m]:l.ctlAt[m+1]] {
			if to := k.of[v]; to != i && last[to] != stamp {
				last[to] = stamp
				t.use = append(t.use, to)
			}
		}
	}
	if int(first) < len(t.use) {
		t.emit(i, message{first: first, row: none, tensor: none})
	}
}

// emit adds message m of kernel producer, whose consumers are the last of t.use.
func (t *tables) emit(producer int32, m message) {
	m.end = int32(len(t.use))
	for _, v := range t.use[m.first:] {
		t.pending[v] += 1 << deviceBits
	}
	t.messages = append(t.messages, m)
	t.producer = append(t.producer, producer)
	t.maxSends += min(int(m.end-m.first), t.d-1)
}

// encode writes the programs. That of kernel i starts with the rows of reference
// counts that its end counts down, one for each distinct input whose users are
// counted, and with ^row for each that it counts up. Then follow its messages: one with
// a single consumer v and no row is the one word ^v; any other is four times its number
// of consumers, plus 1 for a resident tensor and 2 where more uses are to be counted,
// its row or none, the number of these, and its consumers.
// The program ends where that of kernel i+1 starts.
//
// A view is a use of what it shares that ends with its own last use. So a kernel that
// makes one hands its use of the input on to it instead of counting it down; each
// further view of the same input is one more use. Where a view is all that reads a
// tensor, of its size, nothing need be counted: the view takes its memory over, as
// inherits says.
func (t *tables) encode(l *layout, k *kernels, rowOf, last []int32) {
	for r, x := range t.rowShare {
		if x != none {
			t.rowShare[r] = rowOf[x]
		}
	}
	for i := range k.n {
		messages := t.messages[t.first[i]:t.first[i+1]]
		for _, m := range messages {
			if m.row != none && t.rowShare[m.row] != none {
				t.views[t.rowShare[m.row]]++
			}
		}
		t.ops[i].inputs = int32(len(t.program))
		for _, m := range k.ops[k.at[i]:k.at[i+1]] {
			for _, id := range l.in[l.inAt[m]:l.inAt[m+1]] {
				// Last stops a row from being listed twice; the kernel's own are read by
				// others alone.
				if r := rowOf[id]; r != none && last[r] != int32(i)+1 && k.of[l.producer[id]] != int32(i) {
					last[r] = int32(i) + 1
					if t.views[r] > 0 {
						t.views[r]-- // handed on
						continue
					}
					t.program = append(t.program, r)
				}
			}
		}
		for _, m := range messages {
			if m.row == none || t.rowShare[m.row] == none {
				continue
			}
			if r := t.rowShare[m.row]; last[r] == int32(i)+1 { // an input: the kernel's own are counted with their messages
				for ; t.views[r] > 0; t.views[r]-- {
					t.program = append(t.program, ^r)
				}
			}
		}
		t.ops[i].sends = int32(len(t.program))
		for _, m := range messages {
			users := t.use[m.first:m.end]
			if len(users) == 1 && m.row == none {
				t.program = append(t.program, ^users[0])
				continue
			}
			w := int32(len(users)) << 2
			if m.tensor != none && l.resident[m.tensor] {
				w |= 1
			}
			if m.row != none && t.views[m.row] > 0 {
				t.program = append(t.program, w|2, m.row, t.views[m.row])
				t.views[m.row] = 0
			} else {
				t.program = append(t.program, w, m.row)
			}
			t.program = append(t.program, users...)
		}
	}
	t.ops[k.n].inputs = int32(len(t.program))
	t.program = append(t.program, 0) // dispatch looks at the first word of every program
}

// shares returns the tensor whose memory output id of kernel i is in, or none: what a
// view reads, unless the kernel keeps that to itself; then what that is a view of.
func (l *layout) shares(k *kernels, i, id int32) int32 {
	x := l.share[id]
	for x != none && k.of[l.producer[x]] == i && l.keeps(k.of, i, x) {
		x = l.share[x]
	}
	return x
}

// inherits reports whether view t takes over the memory of x, of which it is the heir:
// it is in memory in place of x from the end of its op on. The memory of x must not be
// another tensor's that others need, and somebody must read t.
func (l *layout) inherits(k *kernels, x, t int32) bool {
	if x == none || l.heir[x] != t || l.useAt[t] == l.useAt[t+1] {
		return false
	}
	i, j := k.of[l.producer[x]], k.of[l.producer[t]]
	if i == j || l.keeps(k.of, j, t) {
		return false
	}
	y := none
	if l.share[x] != none {
		y = int(l.shares(k, i, x))
	}
	return y == none || l.inherits(k, int32(y), x)
}
