package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/fuse"
	"placer/units"
)

var kinds = []graph.Kind{"Add", "Add", "Add", "Mul", "Sum", "MatMul", "Conv2D", "Reshape", "Identity", "Shape", "Slice", "Placeholder", "Softmax"}

func randomGraph(r *rand.Rand, n int) *graph.Graph {
	b := graph.NewBuilder("random")
	made := 0
	for i := range n {
		op := graph.Op{Name: fmt.Sprint("op", i), Kind: kinds[r.IntN(len(kinds))]}
		if r.IntN(12) == 0 {
			op.Resident = 1
		}
		var in []graph.TensorID
		for k := r.IntN(4); k > 0 && made > 0; k-- {
			in = append(in, graph.TensorID(made-1-r.IntN(min(made, 8))))
		}
		outs := make([]graph.Tensor, 1+r.IntN(2))
		for k := range outs {
			outs[k] = graph.Tensor{Bytes: units.Bytes(r.IntN(3)), Resident: r.IntN(20) == 0}
		}
		id := b.Op(op, in, outs...)
		made += len(outs)
		if i > 0 && r.IntN(8) == 0 {
			b.Control(graph.OpID(r.IntN(i)), id)
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

func decisions(r *rand.Rand, n int) (device, priority []uint8) {
	device, priority = make([]uint8, n), make([]uint8, n)
	d, levels := 1+r.IntN(3), 1+r.IntN(5)
	for i := range n {
		device[i], priority[i] = uint8(r.IntN(d)), uint8(r.IntN(levels+1))
	}
	return device, priority
}

// naive fuses by the text of Fuse and of the package: a union is made, looked at
// as a whole, and kept if the look finds no fault.
func naive(g *graph.Graph, order []int32, device, priority []uint8) []int32 {
	n := g.NumOps()
	head := make([]int32, n)
	visit := make([]int, 0, n)
	for i := range head {
		head[i] = int32(i)
		visit = append(visit, i)
	}
	slices.SortFunc(visit, func(a, b int) int {
		if priority[a] != priority[b] {
			return int(priority[b]) - int(priority[a])
		}
		return int(order[b] - order[a])
	})
	for _, u := range visit {
		if priority[u] == fuse.Never {
			continue
		}
		first, end := g.Outputs(graph.OpID(u))
		var readers []graph.OpID
		for t := first; t < end; t++ {
			readers = append(readers, g.Consumers(t)...)
		}
		slices.Sort(readers)
		for _, v := range slices.Compact(readers) {
			try := slices.Clone(head)
			for i := range try {
				if head[i] == head[u] {
					try[i] = head[v]
				}
			}
			// Of a kernel's ops any may be the head to Check.
			if fuse.Check(g, device, try) == nil && lastsAreLast(g, order, try) {
				head = try
			}
		}
	}
	return head
}

// lastsAreLast is the rule of order.
func lastsAreLast(g *graph.Graph, order, head []int32) bool {
	last := map[int32]int32{}
	for i, h := range head {
		last[h] = max(last[h], order[i])
	}
	ok := true
	for i := range head {
		for p := range g.Predecessors(graph.OpID(i)) {
			ok = ok && (head[p] == head[i] || order[i] > last[head[p]])
		}
	}
	return ok
}

// same reports whether two namings of kernels mean the same sets.
func same(a, b []int32) bool {
	for i := range a {
		for j := range i {
			if (a[i] == a[j]) != (b[i] == b[j]) {
				return false
			}
		}
	}
	return true
}

// numbers returns a number from 1 for the kernel of each op, 0 for one alone.
func numbers(head []int32) []int {
	size := map[int32]int{}
	for _, h := range head {
		size[h]++
	}
	kernel := make([]int, len(head))
	for i, h := range head {
		if size[h] > 1 {
			kernel[i] = int(h) + 1
		}
	}
	return kernel
}

// within reports whether every kernel of a lies in one of b.
func within(a, b []int32) bool {
	for i, h := range a {
		if b[i] != b[h] {
			return false
		}
	}
	return true
}

func TestFuseAgainstNaive(t *testing.T) {
	fused := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomGraph(r, 1+r.IntN(30))
		rules := fuse.NewRules(g)
		f := fuse.NewFuser(rules)
		for range 3 {
			device, priority := decisions(r, g.NumOps())
			head := f.Fuse(device, priority)
			if err := fuse.Check(g, device, head); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			again, split := rules.Priorities(device, numbers(head))
			if made := fuse.NewFuser(rules).Fuse(device, again); split == 0 != same(made, head) || !within(made, head) {
				t.Fatalf("seed %d: kernels %v come back as %v, %d split", seed, head, made, split)
			}
			if want := naive(g, rules.Order(), device, priority); !same(head, want) {
				t.Fatalf("seed %d: kernels %v, naive %v", seed, head, want)
			}
			for i, h := range head {
				if int(h) != i {
					fused++
				}
			}
		}
	}
	if fused < 5000 {
		t.Errorf("%d ops fused, too few for a test", fused)
	}
}

// The order of fusion is a topological order: every place once, producers first.
func TestOrder(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := randomGraph(r, 1+r.IntN(60))
		order := fuse.NewRules(g).Order()
		alone := make([]int32, g.NumOps())
		for i := range alone {
			alone[i] = int32(i)
		}
		sorted := slices.Sorted(slices.Values(order))
		if !slices.Equal(sorted, alone) || !lastsAreLast(g, order, alone) {
			t.Fatalf("seed %d: %v is no topological order", seed, order)
		}
	}
}

// chain builds ops by kind, each reading those named before it.
func build(t *testing.T, ops ...string) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("case")
	at := map[string]graph.OpID{}
	for _, line := range ops { // "name Kind input input !waits"
		w := strings.Fields(line)
		var in []graph.TensorID
		for _, x := range w[2:] {
			if !strings.HasPrefix(x, "!") {
				in = append(in, b.Output(at[x], 0))
			}
		}
		id := b.Op(graph.Op{Name: w[0], Kind: graph.Kind(w[1])}, in, graph.Tensor{Bytes: units.Bytes(8 - len(in))})
		for _, x := range w[2:] {
			if strings.HasPrefix(x, "!") {
				b.Control(at[x[1:]], id)
			}
		}
		at[w[0]] = id
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Each rule of the package by an example: the kernels where every op may be
// fused.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []string
		want string // kernels
	}{
		{"chain", []string{"x Placeholder", "a Add x", "b Relu a", "c Tanh b"}, "x, a b c"},
		{"epilogue", []string{"x Placeholder", "m MatMul x", "b BiasAdd m", "r Relu b"}, "x, m b r"},
		{"no prologue", []string{"x Placeholder", "a Add x", "m MatMul a"}, "x, a, m"},
		{"one anchor", []string{"x Placeholder", "m MatMul x", "n MatMul x", "a Add m n"}, "x, m, n a"},
		{"a reduction ends a kernel", []string{"x Placeholder", "a Add x", "s Sum a a", "b Add s"}, "x, a s, b"},
		{"no reduction beside an anchor", []string{"x Placeholder", "m MatMul x", "a Add m", "s Sum a a"}, "x, m, a s"},
		{"views pass on", []string{"x Placeholder", "a Add x", "v Reshape a", "b Add v"}, "x, a v b"},
		{"a shape is no data", []string{"x Placeholder", "s Mul x", "a Add x", "v Reshape a s"}, "x, s, a v"},
		{"control keeps apart", []string{"x Placeholder", "a Add x", "b Add a !a"}, "x, a, b"},
		{"cycle", []string{"x Placeholder", "a Add x", "m MatMul a", "b Add a m"}, "x, a, m b"},
		{"all readers", []string{"x Placeholder", "a Add x", "b Tanh a", "c Relu a"}, "x, a b c"},
		{"products read outside", []string{"x Placeholder", "a Add x", "m MatMul a", "s Sum a a"}, "x, a s, m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, c.ops...)
			n := g.NumOps()
			device, priority := make([]uint8, n), slices.Repeat([]uint8{1}, n)
			head := fuse.NewFuser(fuse.NewRules(g)).Fuse(device, priority)
			if got := describe(g, head); got != c.want {
				t.Errorf("kernels %s, want %s", got, c.want)
			}
		})
	}
}

// An op that repeats is a kernel of its own, several times: what it passes on is complete
// when the last has ended. A view is one however often it is taken.
func TestRepeatedOpsAreAlone(t *testing.T) {
	for _, c := range []struct {
		of   string
		op   graph.Op
		want string
	}{
		{"b", graph.Op{}, "x, a b v c"},
		{"b", graph.Op{Repeats: 5}, "x, a, b, v c"},
		{"b", graph.Op{Kernels: 2}, "x, a, b, v c"},
		{"v", graph.Op{Repeats: 5}, "x, a b v c"},
	} {
		b := graph.NewBuilder("case")
		in := []graph.TensorID(nil)
		for _, x := range [][2]string{{"x", "Placeholder"}, {"a", "Add"}, {"b", "Relu"}, {"v", "Reshape"}, {"c", "Tanh"}} {
			o := graph.Op{Name: x[0], Kind: graph.Kind(x[1])}
			if x[0] == c.of {
				o.Repeats, o.Kernels = c.op.Repeats, c.op.Kernels
			}
			in = []graph.TensorID{b.Output(b.Op(o, in, graph.Tensor{Bytes: 8}), 0)}
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		head := fuse.NewFuser(fuse.NewRules(g)).Fuse(make([]uint8, g.NumOps()), slices.Repeat([]uint8{1}, g.NumOps()))
		if got := describe(g, head); got != c.want {
			t.Errorf("%s %+v: kernels %s, want %s", c.of, c.op, got, c.want)
		}
	}
}

// An update that writes a variable in place is fused like any op of its kind, and writes it
// although its kernel reads it: two variables of 64 B are read and written, and a gradient is
// read. A view of a variable is alone.
func TestUpdatesInPlaceFuse(t *testing.T) {
	b := graph.NewBuilder("update")
	tensor := func(resident bool) graph.Tensor {
		return graph.Tensor{Shape: graph.Shape{16}, Bytes: graph.Auto, Resident: resident}
	}
	op := func(name string, kind graph.Kind, phase graph.Phase, resident bool, in ...graph.TensorID) graph.TensorID {
		o := graph.Op{Name: name, Kind: kind, Phase: phase, Bytes: graph.Auto}
		if kind == "VariableV2" {
			o.Resident = 64
		}
		return b.Output(b.Op(o, in, tensor(resident)), 0)
	}
	w, m := op("w", "VariableV2", graph.Forward, true), op("m", "VariableV2", graph.Update, true)
	x := op("x", "Placeholder", graph.Forward, false)
	read := op("read", "Identity", graph.Forward, true, w)
	grad := op("grad", "MatMul", graph.Backward, false, x, read)
	kept := op("kept", "Mul", graph.Update, false, m, m)
	trace := op("trace", "Add", graph.Update, true, kept, grad)
	op("new", "Sub", graph.Update, true, w, trace)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	rules := fuse.NewRules(g)
	head := fuse.NewFuser(rules).Fuse(make([]uint8, g.NumOps()), []uint8{1, 1, 1, 1, 0, 1, 1, 1})
	if got, want := describe(g, head), "w, m, x, read, grad, kept trace new"; got != want {
		t.Fatalf("kernels %s, want %s", got, want)
	}
	var traffic units.Bytes
	for i := graph.OpID(5); i < 8; i++ {
		traffic += fuse.Traffic(g, fuse.Roles(g), i, func(j graph.OpID) bool { return j >= 5 })
	}
	if traffic != 5*64 {
		t.Errorf("the kernel moves %d B, want %d", traffic, 5*64)
	}
}

func describe(g *graph.Graph, head []int32) string {
	var out []string
	for i := range head {
		if slices.Index(head, head[i]) != i {
			continue
		}
		var names []string
		for j := range head {
			if head[j] == head[i] {
				names = append(names, g.Op(graph.OpID(j)).Name)
			}
		}
		out = append(out, strings.Join(names, " "))
	}
	return strings.Join(out, ", ")
}

func TestPriorityAndDevice(t *testing.T) {
	// Both products may go on with the sum; the first to be visited does.
	g := build(t, "x Placeholder", "m MatMul x", "n MatMul x", "a Add m n")
	f := fuse.NewFuser(fuse.NewRules(g))
	for _, c := range []struct {
		device, priority []uint8
		want             string
	}{
		{[]uint8{0, 0, 0, 0}, []uint8{0, 2, 1, 0}, "x, m a, n"},
		{[]uint8{0, 0, 0, 0}, []uint8{0, 1, 2, 0}, "x, m, n a"},
		{[]uint8{0, 0, 0, 0}, []uint8{9, 0, 0, 9}, "x, m, n, a"},
		{[]uint8{0, 1, 0, 1}, []uint8{0, 1, 2, 0}, "x, m a, n"},
	} {
		if got := describe(g, f.Fuse(c.device, c.priority)); got != c.want {
			t.Errorf("devices %v, priorities %v: %s, want %s", c.device, c.priority, got, c.want)
		}
	}
}

func TestMaxOps(t *testing.T) {
	ops := []string{"x Placeholder", "op0 Add x"}
	for i := range 2 * fuse.MaxOps {
		ops = append(ops, fmt.Sprintf("op%d Add op%d", i+1, i))
	}
	g := build(t, ops...)
	n := g.NumOps()
	head := fuse.NewFuser(fuse.NewRules(g)).Fuse(make([]uint8, n), slices.Repeat([]uint8{1}, n))
	size := map[int32]int{}
	for _, h := range head {
		size[h]++
	}
	if len(size) != 4 { // x, two full ones and what is left
		t.Errorf("%d kernels, want 4", len(size))
	}
	for _, s := range size {
		if s > fuse.MaxOps {
			t.Errorf("a kernel of %d ops", s)
		}
	}
}

func TestCheckErrors(t *testing.T) {
	g := build(t, "x Placeholder", "a Add x", "m MatMul a", "b Add a m", "c Add x", "w Add a !c", "p MatMul b", "q Add p b")
	for _, c := range []struct {
		name   string
		device []uint8
		head   []int32
		want   string
	}{
		{"short", make([]uint8, 8), make([]int32, 7), "kernels of 7 ops"},
		{"no head", make([]uint8, 8), []int32{0, 2, 3, 3, 4, 5, 6, 7}, "op 2 does not head its kernel"},
		{"two devices", []uint8{0, 1, 0, 0, 0, 0, 0, 0}, []int32{0, 3, 2, 3, 4, 5, 6, 7}, "op 1 (a) is on device 1, its kernel's op 3 (b) on 0"},
		{"role", make([]uint8, 8), []int32{0, 2, 2, 3, 4, 5, 6, 7}, "op 1 (a) (loop) cannot hand data to op 2 (m) (anchor)"},
		{"control", make([]uint8, 8), []int32{0, 1, 2, 3, 5, 5, 6, 7}, "op 5 (w) waits for op 4 (c) of the same kernel"},
		{"strangers", make([]uint8, 8), []int32{0, 1, 2, 4, 4, 5, 6, 7}, "shares nothing with the rest"},
		{"cycle", make([]uint8, 8), []int32{0, 3, 2, 3, 4, 5, 6, 7}, "kernel of op 1 (a) waits for what waits for it"},
		{"two anchors", make([]uint8, 8), []int32{0, 1, 7, 7, 4, 5, 7, 7}, "cannot hand data"},
	} {
		err := fuse.Check(g, c.device, c.head)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	if err := fuse.Check(g, make([]uint8, 8), []int32{0, 1, 2, 2, 4, 5, 6, 7}); err != nil {
		t.Error(err)
	}
}
