package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
	"placer/units"
)

// plain is an op of which only name and kind matter.
func plain(name string, kind graph.Kind) graph.Op {
	return graph.Op{Name: name, Kind: kind, Bytes: graph.Auto, Forward: graph.None}
}

func shaped(d ...int64) graph.Tensor { return graph.Tensor{Shape: d, Bytes: graph.Auto} }

// TestBuildKeepsInvariants checks what Graph promises on drawn graphs whose ops
// were added out of order.
func TestBuildKeepsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
		edges, tensors := 0, graph.TensorID(0)
		for i := range graph.OpID(g.NumOps()) {
			first, end := g.Outputs(i)
			if first != tensors || end < first {
				t.Fatalf("op %d makes tensors %d..%d, want a range from %d", i, first, end, tensors)
			}
			tensors = end
			for k := first; k < end; k++ {
				if g.Tensor(k).Producer != i {
					t.Errorf("tensor %d of op %d says producer %d", k, i, g.Tensor(k).Producer)
				}
			}
			for _, k := range g.Inputs(i) {
				if g.Tensor(k).Producer >= i {
					t.Errorf("op %d reads tensor %d of op %d", i, k, g.Tensor(k).Producer)
				}
				if !contains(g.Consumers(k), i) {
					t.Errorf("op %d reads tensor %d, whose consumers are %v", i, k, g.Consumers(k))
				}
				edges++
			}
			for n, c := range g.Control(i) {
				if c >= i || n > 0 && c <= g.Control(i)[n-1] {
					t.Errorf("control of op %d: %v, want ascending and before it", i, g.Control(i))
				}
			}
		}
		if int(tensors) != g.NumTensors() || edges != g.NumEdges() {
			t.Errorf("%d tensors and %d edges, want %d and %d", g.NumTensors(), g.NumEdges(), tensors, edges)
		}
		for k := range tensors {
			for n, c := range g.Consumers(k) {
				if n > 0 && c <= g.Consumers(k)[n-1] || !contains(g.Inputs(c), k) {
					t.Errorf("consumers of tensor %d: %v", k, g.Consumers(k))
				}
			}
		}
	})
}

func contains[T comparable](list []T, x T) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// Among ready ops the one added first comes first, so a graph added in order
// keeps its order and one added backwards is turned round.
func TestBuildOrder(t *testing.T) {
	b := graph.NewBuilder("g")
	c := b.Op(plain("c", "Relu"), []graph.TensorID{1}, shaped(2)) // reads a tensor to come
	b.Op(plain("b", "Relu"), nil, shaped(2))
	b.Op(plain("a", "Relu"), []graph.TensorID{0}, shaped(2))
	b.Op(plain("d", "Relu"), nil)
	b.Control(c, 3)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for i := range graph.OpID(g.NumOps()) {
		order = append(order, g.Op(i).Name)
	}
	if got := strings.Join(order, " "); got != "b c a d" {
		t.Errorf("order %s, want b c a d", got)
	}
}

func TestAutoBytes(t *testing.T) {
	for _, c := range []struct {
		kind graph.Kind
		want units.Bytes // of an op that reads 8 B twice and 12 B and makes 20 B
	}{
		{"AddV2", 8 + 12 + 20}, {"Reshape", 0}, {"VariableV2", 0}, {"Const", 0}, {"Placeholder", 0},
		{"Gather", 2 * 20}, // reads only the rows it writes
		{"Foreign", 8 + 12 + 20},
	} {
		b := graph.NewBuilder("g")
		b.Op(plain("x", "Placeholder"), nil, shaped(2), shaped(3))
		b.Op(plain("y", c.kind), []graph.TensorID{0, 0, 1}, shaped(5))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Op(1).Bytes; got != c.want {
			t.Errorf("%s moves %v, want %v", c.kind, got, c.want)
		}
		b = graph.NewBuilder("g")
		b.Op(plain("x", "Placeholder"), nil, shaped(2), shaped(3))
		again := plain("y", c.kind)
		again.Repeats = 3
		b.Op(again, []graph.TensorID{0, 0, 1}, shaped(5))
		if g, err = b.Build(); err != nil {
			t.Fatal(err)
		}
		if got := g.Op(1).Bytes; got != 3*c.want {
			t.Errorf("%s moves %v in three iterations, want %v", c.kind, got, 3*c.want)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		add  func(b *graph.Builder)
		want string
	}{
		{"empty", func(*graph.Builder) {}, "graph g: the graph has no ops"},
		{"no name", func(b *graph.Builder) { b.Op(plain("", "Relu"), nil) }, "op 0 (): has no name or no kind"},
		{"no kind", func(b *graph.Builder) { b.Op(plain("a", ""), nil) }, "op 0 (a): has no name or no kind"},
		{"same name", func(b *graph.Builder) { b.Op(plain("a", "Relu"), nil); b.Op(plain("a", "Relu"), nil) }, "op 1 (a): an earlier op has the same name"},
		{"no such tensor", func(b *graph.Builder) { b.Op(plain("a", "Relu"), []graph.TensorID{1}, shaped()) }, "op 0 (a): input tensor 1 does not exist"},
		{"no such control", func(b *graph.Builder) { b.Op(plain("a", "Relu"), nil); b.Control(4, 0) }, "op 0 (a): control dependency on op 4, which does not exist"},
		{"reads itself", func(b *graph.Builder) { b.Op(plain("a", "Relu"), []graph.TensorID{0}, shaped()) }, "cycle through op 0 (a): a <- a"},
		{"three in a ring", func(b *graph.Builder) {
			b.Op(plain("tail", "Relu"), []graph.TensorID{1}, shaped())
			b.Op(plain("a", "Relu"), []graph.TensorID{3}, shaped())
			b.Op(plain("b", "Relu"), []graph.TensorID{1}, shaped())
			b.Op(plain("c", "Relu"), []graph.TensorID{2}, shaped())
		}, "cycle through op 1 (a): a <- c <- b <- a"},
		{"negative FLOPs", func(b *graph.Builder) { o := plain("a", "Relu"); o.FLOPs = -1; b.Op(o, nil) }, "op 0 (a): -1 FLOPs"},
		{"half a product", func(b *graph.Builder) { o := plain("a", "MatMul"); o.GEMM.M = 3; b.Op(o, nil) }, "has an empty dimension"},
		{"too large", func(b *graph.Builder) { b.Op(plain("a", "Relu"), nil, shaped(1<<40, 1<<40)) }, "op 0 (a): output: shape [1099511627776 1099511627776] is too large"},
		{"sum too large", func(b *graph.Builder) {
			o := plain("a", "Const")
			o.Resident = graph.MaxBytes
			b.Op(o, nil)
			o.Name = "b"
			b.Op(o, nil)
		}, "op 1 (b): byte counts"},
		{"forward of nothing", func(b *graph.Builder) { o := plain("a", "Relu"); o.Forward = 7; b.Op(o, nil) }, "forward op 7"},
		{"negative repeats", func(b *graph.Builder) { o := plain("a", "Relu"); o.Repeats = -1; b.Op(o, nil) }, "op 0 (a): -1 iterations of 0 kernels"},
		{"too many kernels", func(b *graph.Builder) {
			o := plain("a", "Relu")
			o.Repeats, o.Kernels = 1<<39, 3
			b.Op(o, nil)
		}, "op 0 (a): 549755813888 iterations of 3 kernels, want at most 1099511627776 kernels in all"},
		{"traffic of many iterations", func(b *graph.Builder) {
			o := plain("a", "Relu")
			o.Repeats = 1 << 39
			b.Op(o, nil, shaped(1<<30))
		}, "op 0 (a): byte counts"},
		{"negative group", func(b *graph.Builder) { o := plain("a", "Relu"); o.Group = -1; b.Op(o, nil) }, "group -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := graph.NewBuilder("g")
			c.add(b)
			if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Every field that a cost or a constraint depends on changes the hash, and the
// graph's name does not.
func TestHash(t *testing.T) {
	build := func(name string, change func(b *graph.Builder, a, c graph.OpID)) string {
		b := graph.NewBuilder(name)
		a := b.Op(plain("a", "VariableV2"), nil, shaped(2, 3))
		c := b.Op(plain("c", "Relu"), []graph.TensorID{0}, shaped(2, 3))
		b.Op(plain("d", "Relu"), []graph.TensorID{0}, shaped(2, 3))
		change(b, a, c)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g.Hash()
	}
	none := func(*graph.Builder, graph.OpID, graph.OpID) {}
	base := build("g", none)
	if base != build("another name", none) {
		t.Error("the name changed the hash")
	}
	seen := map[string]string{base: "nothing"}
	for field, change := range map[string]func(o *graph.Op){
		"name": func(o *graph.Op) { o.Name = "x" }, "kind": func(o *graph.Op) { o.Kind = "Tanh" }, "phase": func(o *graph.Op) { o.Phase = graph.Update },
		"dtype": func(o *graph.Op) { o.DType = graph.F16 }, "flops": func(o *graph.Op) { o.FLOPs = 1 }, "gemm": func(o *graph.Op) { o.GEMM = graph.GEMM{Batch: 1, M: 1, N: 1, K: 1} },
		"bytes": func(o *graph.Op) { o.Bytes = 5 }, "resident": func(o *graph.Op) { o.Resident = 5 }, "params": func(o *graph.Op) { o.Params = 5 },
		"repeats": func(o *graph.Op) { o.Repeats, o.Bytes = 5, 48 }, "kernels": func(o *graph.Op) { o.Kernels = 5 },
		"workspace": func(o *graph.Op) { o.Workspace = 5 }, "layer": func(o *graph.Op) { o.Layer = 5 }, "group": func(o *graph.Op) { o.Group = 5 }, "forward": func(o *graph.Op) { o.Forward = 0 },
	} {
		h := build("g", func(b *graph.Builder, _, c graph.OpID) { change(b.At(c)) })
		if other, taken := seen[h]; taken {
			t.Errorf("changing %s gives the hash of changing %s", field, other)
		}
		seen[h] = field
	}
	for what, change := range map[string]func(b *graph.Builder, a, c graph.OpID){
		"shape":        func(b *graph.Builder, a, _ graph.OpID) { b.TensorAt(b.Output(a, 0)).Shape = graph.Shape{3, 2} },
		"tensor dtype": func(b *graph.Builder, a, _ graph.OpID) { b.TensorAt(b.Output(a, 0)).DType = graph.I32 },
		"view":         func(b *graph.Builder, a, _ graph.OpID) { b.TensorAt(b.Output(a, 0)).Resident = true },
		"input":        func(b *graph.Builder, _, c graph.OpID) { b.Replace(c, nil) },
		"control":      func(b *graph.Builder, a, c graph.OpID) { b.Control(a, c) },
	} {
		h := build("g", change)
		if other, taken := seen[h]; taken {
			t.Errorf("changing %s gives the hash of changing %s", what, other)
		}
		seen[h] = what
	}
}

// A number of dimensions or ops moved from one list to the next must not look
// the same.
func TestHashSeparatesLists(t *testing.T) {
	build := func(x, y graph.Tensor) string {
		b := graph.NewBuilder("g")
		b.Op(plain("a", "Foreign"), nil, x, y)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g.Hash()
	}
	fixed := func(d ...int64) graph.Tensor { return graph.Tensor{Shape: d, Bytes: 4} }
	if build(fixed(1, 1), fixed(1)) == build(fixed(1), fixed(1, 1)) {
		t.Error("[1 1] [1] hashes as [1] [1 1]")
	}
}

func TestFactsOf(t *testing.T) {
	for _, c := range []struct {
		kind  graph.Kind
		class graph.Class
		fuse  graph.FuseRole
		known bool
	}{
		{"MatMul", graph.ClassGEMM, graph.FuseAnchor, true}, {"Conv2D", graph.ClassConv, graph.FuseAnchor, true}, {"AddV2", graph.ClassElementwise, graph.FuseLoop, true},
		{"Sum", graph.ClassReduction, graph.FuseReduce, true}, {"Reshape", graph.ClassMeta, graph.FuseView, true}, {"Softmax", graph.ClassReduction, graph.FuseNever, true},
		{"VariableV2", graph.ClassVariable, graph.FuseNever, true}, {"ApplyAdam", graph.ClassUpdate, graph.FuseNever, true}, {"no such kind", graph.ClassOther, graph.FuseNever, false},
	} {
		f, known := graph.FactsOf(c.kind)
		if f.Class != c.class || f.Fuse != c.fuse || known != c.known || c.kind.Class() != c.class {
			t.Errorf("facts of %s: %+v, known %v; want class %v, %v, known %v", c.kind, f, known, c.class, c.fuse, c.known)
		}
	}
	if f, _ := graph.FactsOf("Shape"); !f.ReadsShape {
		t.Error("Shape reads elements")
	}
	if n := fmt.Sprint(graph.Class(graph.NumClasses - 1)); n != "update" {
		t.Errorf("the last class prints as %q", n)
	}
}

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape graph.Shape
		want  int64
		fail  bool
	}{
		{nil, 1, false}, {graph.Shape{}, 1, false}, {graph.Shape{2, 3}, 6, false}, {graph.Shape{5, 0}, 0, false},
		{graph.Shape{-1}, 0, true}, {graph.Shape{1 << 40, 1 << 40}, 0, true}, {graph.Shape{1 << 62}, 0, true},
	} {
		if n, err := c.shape.Elements(); n != c.want || (err != nil) != c.fail {
			t.Errorf("%v has %d elements, %v; want %d", c.shape, n, err, c.want)
		}
	}
}
