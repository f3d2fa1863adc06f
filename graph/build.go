package graph

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"placer/units"
)

// Auto asks Build to fill a byte count.
const Auto units.Bytes = -1

// Builder collects ops in any order and makes a Graph of them. The ids it hands
// out are its own: Build renumbers when the order of adding is not topological.
type Builder struct {
	name    string
	ops     []Op
	tensors []Tensor
	outAt   []int32
	in      [][]TensorID
	ctl     [][]OpID
	sorted  []OpID // [N] after Build: the op of each place of the graph
}

// NewBuilder returns an empty builder.
func NewBuilder(name string) *Builder { return &Builder{name: name, outAt: []int32{0}} }

// Grow makes room for so many more ops and tensors.
func (b *Builder) Grow(ops, tensors int) {
	b.ops, b.in, b.ctl, b.outAt = slices.Grow(b.ops, ops), slices.Grow(b.in, ops), slices.Grow(b.ctl, ops), slices.Grow(b.outAt, ops)
	b.tensors = slices.Grow(b.tensors, tensors)
}

// Op adds an op that reads the tensors in and makes the tensors outs, and
// returns its id. It keeps in. Tensors may be named before their producer is
// added (see Tensor); Build reports those that never appear.
func (b *Builder) Op(op Op, in []TensorID, outs ...Tensor) OpID {
	id := OpID(len(b.ops))
	b.ops = append(b.ops, op)
	b.in = append(b.in, in)
	b.ctl = append(b.ctl, nil)
	for _, t := range outs {
		t.Producer = id
		b.tensors = append(b.tensors, t)
	}
	b.outAt = append(b.outAt, int32(len(b.tensors)))
	return id
}

// Output returns the id of output slot of op i.
func (b *Builder) Output(i OpID, slot int) TensorID {
	if slot < 0 || int32(slot) >= b.outAt[i+1]-b.outAt[i] {
		panic(fmt.Sprintf("graph: op %d (%s) has %d outputs, want slot %d", i, b.ops[i].Name, b.outAt[i+1]-b.outAt[i], slot))
	}
	return TensorID(b.outAt[i] + int32(slot))
}

// Control makes op after wait for op before.
func (b *Builder) Control(before, after OpID) { b.ctl[after] = append(b.ctl[after], before) }

// Replace sets the inputs of op i. It keeps in.
func (b *Builder) Replace(i OpID, in []TensorID) { b.in[i] = in }

// At returns op i for reading and changing until Build.
func (b *Builder) At(i OpID) *Op { return &b.ops[i] }

// TensorAt returns tensor t for reading and changing until Build.
func (b *Builder) TensorAt(t TensorID) *Tensor { return &b.tensors[t] }

// InputsAt returns the inputs of op i, read-only.
func (b *Builder) InputsAt(i OpID) []TensorID { return b.in[i] }

// OutputsAt returns the half-open range of the tensors of op i.
func (b *Builder) OutputsAt(i OpID) (first, end TensorID) {
	return TensorID(b.outAt[i]), TensorID(b.outAt[i+1])
}

// NumOps returns the number of ops so far.
func (b *Builder) NumOps() int { return len(b.ops) }

// Build fills what is Auto, orders the ops (keeping the order of adding where
// the edges allow) and checks the result. The builder must not be used again.
func (b *Builder) Build() (*Graph, error) {
	if len(b.ops) > 1<<30 || len(b.tensors) > 1<<30 {
		return nil, fmt.Errorf("graph %s: %d ops and %d tensors are too many", b.name, len(b.ops), len(b.tensors))
	}
	for i := range b.ops {
		for _, t := range b.in[i] {
			if t < 0 || int(t) >= len(b.tensors) {
				return nil, fmt.Errorf("graph %s: op %d (%s): input tensor %d does not exist", b.name, i, b.ops[i].Name, t)
			}
		}
		for _, c := range b.ctl[i] {
			if c < 0 || int(c) >= len(b.ops) {
				return nil, fmt.Errorf("graph %s: op %d (%s): control dependency on op %d, which does not exist", b.name, i, b.ops[i].Name, c)
			}
		}
	}
	var err error
	if b.sorted, err = b.order(); err != nil {
		return nil, err
	}
	if err := b.fill(); err != nil {
		return nil, err
	}
	g := b.layout(b.sorted)
	if err := g.Check(); err != nil {
		return nil, err
	}
	g.hash = sync.OnceValue(g.computeHash)
	return g, nil
}

// Order returns, after Build, the id that the builder gave each op of the graph, [N].
func (b *Builder) Order() []OpID { return b.sorted }

// order returns the ops in topological order; among ready ops the first added
// comes first.
func (b *Builder) order() ([]OpID, error) {
	sorted := true
	for i := range b.ops {
		for p := range b.predecessors(OpID(i)) {
			sorted = sorted && p < OpID(i)
		}
	}
	order := make([]OpID, 0, len(b.ops))
	if sorted {
		for i := range b.ops {
			order = append(order, OpID(i))
		}
		return order, nil
	}
	wait, at := make([]int, len(b.ops)), make([]int32, len(b.ops)+1) // at: of each op in next
	for i := range b.ops {
		for p := range b.predecessors(OpID(i)) {
			at[p+1]++
			wait[i]++
		}
	}
	for i := range b.ops {
		at[i+1] += at[i]
	}
	next, end := make([]OpID, at[len(b.ops)]), slices.Clone(at)
	for i := range b.ops {
		for p := range b.predecessors(OpID(i)) {
			next[end[p]] = OpID(i)
			end[p]++
		}
	}
	var ready opHeap
	for i := range wait {
		if wait[i] == 0 {
			ready = append(ready, OpID(i)) // ascending, so a heap
		}
	}
	for len(ready) > 0 {
		i := ready.pop()
		order = append(order, i)
		for _, j := range next[at[i]:at[i+1]] {
			if wait[j]--; wait[j] == 0 {
				ready.push(j)
			}
		}
	}
	if len(order) == len(b.ops) {
		return order, nil
	}
	return nil, b.cycleError(wait)
}

// cycleError names a cycle among the ops that wait; "a <- b" says that a reads b.
func (b *Builder) cycleError(wait []int) error {
	at := OpID(slices.IndexFunc(wait, func(n int) bool { return n > 0 }))
	seen := map[OpID]bool{}
	for !seen[at] { // walk back along waiting predecessors until one repeats
		seen[at] = true
		at = b.waitingPredecessor(at, wait)
	}
	start, path := at, b.ops[at].Name
	for {
		at = b.waitingPredecessor(at, wait)
		path += " <- " + b.ops[at].Name
		if at == start {
			break
		}
		if len(path) > 200 {
			path += " <- ..."
			break
		}
	}
	return fmt.Errorf("graph %s: cycle through op %d (%s): %s", b.name, start, b.ops[start].Name, path)
}

func (b *Builder) waitingPredecessor(i OpID, wait []int) OpID {
	for p := range b.predecessors(i) {
		if wait[p] > 0 {
			return p
		}
	}
	panic("graph: an op waits for no op")
}

// predecessors is Graph.Predecessors before Build.
func (b *Builder) predecessors(i OpID) iter.Seq[OpID] {
	return func(yield func(OpID) bool) {
		for _, t := range b.in[i] {
			if !yield(b.tensors[t].Producer) {
				return
			}
		}
		for _, c := range b.ctl[i] {
			if !yield(c) {
				return
			}
		}
	}
}

// fill computes the byte counts left to Auto.
func (b *Builder) fill() error {
	for t := range b.tensors {
		x := &b.tensors[t]
		if x.Bytes >= 0 {
			continue
		}
		n, err := x.Shape.Elements()
		if err != nil {
			return fmt.Errorf("graph %s: op %d (%s): output: %w", b.name, x.Producer, b.ops[x.Producer].Name, err)
		}
		x.Bytes = units.Bytes(n * x.DType.Size())
	}
	for i := range b.ops {
		o := &b.ops[i]
		if o.Bytes < 0 {
			n, _ := o.Iterations()
			o.Bytes = min(b.traffic(OpID(i)), MaxBytes/units.Bytes(n)+1) * units.Bytes(n) // beyond MaxBytes Check fails
		}
		if o.Repeats == 1 {
			o.Repeats = 0
		}
		if o.Kernels == 1 {
			o.Kernels = 0
		}
	}
	return nil
}

// traffic is the default of Op.Bytes, of one iteration: every distinct input read
// once, every output written once; nothing for kinds that launch no kernel; the rows
// alone for gathers.
func (b *Builder) traffic(i OpID) (n units.Bytes) {
	var out, in units.Bytes
	for t := b.outAt[i]; t < b.outAt[i+1]; t++ {
		out += b.tensors[t].Bytes
	}
	for k, t := range b.in[i] {
		if !slices.Contains(b.in[i][:k], t) {
			in += b.tensors[t].Bytes
		}
	}
	switch b.ops[i].Kind.Class() {
	case ClassInput, ClassVariable, ClassConst, ClassMeta:
		return 0
	case ClassGather:
		return 2 * out
	}
	return in + out
}

// layout copies the ops in order and builds the index arrays.
func (b *Builder) layout(order []OpID) *Graph {
	n, nt, inputs := len(b.ops), len(b.tensors), 0
	for _, in := range b.in {
		inputs += len(in)
	}
	g := &Graph{
		name: b.name, ops: make([]Op, n), tensors: make([]Tensor, 0, nt),
		in: make([]TensorID, 0, inputs), outAt: make([]int32, n+1), inAt: make([]int32, n+1), ctlAt: make([]int32, n+1), useAt: make([]int32, nt+1),
	}
	opTo := make([]OpID, n)
	tensorTo := make([]TensorID, nt)
	for to, from := range order {
		opTo[from] = OpID(to)
		for t := b.outAt[from]; t < b.outAt[from+1]; t++ {
			tensorTo[t] = TensorID(len(g.tensors))
			x := b.tensors[t]
			x.Producer = OpID(to)
			g.tensors = append(g.tensors, x)
		}
		g.outAt[to+1] = int32(len(g.tensors))
	}
	for to, from := range order {
		g.ops[to] = b.ops[from]
		if f := b.ops[from].Forward; f >= 0 && int(f) < n {
			g.ops[to].Forward = opTo[f]
		}
		for _, t := range b.in[from] {
			g.in = append(g.in, tensorTo[t])
		}
		g.inAt[to+1] = int32(len(g.in))
		first := len(g.ctl)
		for _, c := range b.ctl[from] {
			g.ctl = append(g.ctl, opTo[c])
		}
		slices.Sort(g.ctl[first:])
		g.ctl = g.ctl[:first+len(slices.Compact(g.ctl[first:]))]
		g.ctlAt[to+1] = int32(len(g.ctl))
	}
	g.index()
	return g
}

// index builds the consumers of each tensor, ascending, each once.
func (g *Graph) index() {
	last := make([]OpID, len(g.tensors)) // last consumer counted, plus one
	for i := range g.ops {
		for _, t := range g.Inputs(OpID(i)) {
			if last[t] != OpID(i)+1 {
				last[t] = OpID(i) + 1
				g.useAt[t+1]++
			}
		}
	}
	for t := range g.tensors {
		g.useAt[t+1] += g.useAt[t]
	}
	g.use = make([]OpID, g.useAt[len(g.tensors)])
	at := slices.Clone(g.useAt)
	clear(last)
	for i := range g.ops {
		for _, t := range g.Inputs(OpID(i)) {
			if last[t] != OpID(i)+1 {
				last[t] = OpID(i) + 1
				g.use[at[t]] = OpID(i)
				at[t]++
			}
		}
	}
}

// opHeap is a heap of ids, the lowest first.
type opHeap []OpID

func (h *opHeap) push(x OpID) {
	q := append(*h, x)
	at := len(q) - 1
	for at > 0 && q[(at-1)/2] > x {
		q[at] = q[(at-1)/2]
		at = (at - 1) / 2
	}
	q[at] = x
	*h = q
}

func (h *opHeap) pop() OpID {
	q := *h
	top, last := q[0], len(q)-1
	x := q[last]
	q = q[:last]
	*h = q
	at := 0
	for {
		child := 2*at + 1
		if child >= last {
			break
		}
		if child+1 < last && q[child+1] < q[child] {
			child++
		}
		if q[child] >= x {
			break
		}
		q[at] = q[child]
		at = child
	}
	if last > 0 {
		q[at] = x
	}
	return top
}

// errNoOps says that a graph is empty.
var errNoOps = errors.New("the graph has no ops")
