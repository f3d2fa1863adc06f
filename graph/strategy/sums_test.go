package strategy

import (
	"fmt"
	"testing"

	"placer/graph"
)

// gradientSums is the split, by rows or not, of a block of which three products read x, and of the sum
// of its result and x; build adds up the gradients of x that these four give, the last of which is
// whole. Those of the products are made in a type, and cast to f32.
func gradientSums(t *testing.T, rows bool, in graph.DType, build func(add func(name string, in ...graph.TensorID) graph.TensorID, products [3]graph.TensorID, whole graph.TensorID)) (*graph.Graph, *Split) {
	t.Helper()
	const n, width, inner = 32, 16, 64
	b := graph.NewBuilder("sums")
	f32 := func(dims ...int64) graph.Tensor {
		return graph.Tensor{DType: graph.F32, Shape: dims, Bytes: graph.Auto}
	}
	op := func(o graph.Op, out graph.Tensor, in ...graph.TensorID) (graph.OpID, graph.TensorID) {
		id := b.Op(o, in, out)
		return id, b.Output(id, 0)
	}
	forward := func(name string, kind graph.Kind, m graph.GEMM, out graph.Tensor, in ...graph.TensorID) (graph.OpID, graph.TensorID) {
		return op(graph.Op{Name: name, Kind: kind, GEMM: m, Forward: graph.None}, out, in...)
	}
	backward := func(name string, kind graph.Kind, m graph.GEMM, of graph.OpID, out graph.Tensor, in ...graph.TensorID) graph.TensorID {
		_, y := op(graph.Op{Name: name, Kind: kind, GEMM: m, Phase: graph.Backward, Forward: of}, out, in...)
		return y
	}
	weight := func(name string, dims ...int64) graph.TensorID {
		_, w := op(graph.Op{Name: name, Kind: "VariableV2", Params: dims[0] * dims[1], Forward: graph.None}, f32(dims...))
		return w
	}
	_, batch := forward("batch", "Placeholder", graph.GEMM{}, f32(n, width))
	_, x := forward("x", "Relu", graph.GEMM{}, f32(n, width), batch)
	up := graph.GEMM{Batch: 1, M: n, N: inner, K: width}
	var ws, ys [3]graph.TensorID
	var ups [3]graph.OpID
	for k, name := range []string{"q", "k", "v"} {
		ws[k] = weight("weight of "+name, width, inner)
		ups[k], ys[k] = forward(name, "MatMul", up, f32(n, inner), x, ws[k])
	}
	_, z := forward("scores", "Mul", graph.GEMM{}, f32(n, inner), ys[0], ys[1])
	mul, z := forward("values", "Mul", graph.GEMM{}, f32(n, inner), z, ys[2])
	w := weight("weight of out", inner, width)
	out, y := forward("out", "MatMul", graph.GEMM{Batch: 1, M: n, N: width, K: inner}, f32(n, width), z, w)
	sum, y := forward("sum", "AddV2", graph.GEMM{}, f32(n, width), x, y)
	last, _ := forward("last", "Relu", graph.GEMM{}, f32(n, width), y)
	whole := backward("of last", "ReluGrad", graph.GEMM{}, last, f32(n, width), y)
	inside := backward("of out", "MatMul", graph.GEMM{Batch: 1, M: n, N: inner, K: width}, out, f32(n, inner), whole, w)
	inside = backward("of values", "Mul", graph.GEMM{}, mul, f32(n, inner), inside, ys[0])
	var products [3]graph.TensorID
	for k, name := range []string{"q", "k", "v"} {
		products[k] = backward("of "+name, "MatMul", graph.GEMM{Batch: 1, M: n, N: width, K: inner}, ups[k], graph.Tensor{DType: in, Shape: graph.Shape{n, width}, Bytes: graph.Auto}, inside, ws[k])
		if in != graph.F32 {
			products[k] = backward("cast "+name, "Cast", graph.GEMM{}, graph.None, f32(n, width), products[k])
		}
	}
	around := backward("around", "ReluGrad", graph.GEMM{}, last, f32(n, width), whole)
	build(func(name string, in ...graph.TensorID) graph.TensorID {
		return backward(name, "AddV2", graph.GEMM{}, sum, f32(n, width), in...)
	}, products, around)
	m := modelOf(t, b)
	g := m.Micro
	how := Single(1)
	how.Tensor, how.Sequence = 4, rows
	s := FindSplit(m, how)
	if s.Blocks != 1 {
		t.Fatalf("%d blocks", s.Blocks)
	}
	return g, s
}

// reducedIn returns the names of the backward ops whose results are partial sums to reduce.
func reducedIn(g *graph.Graph, s *Split) (names []string) {
	for t := range graph.TensorID(g.NumTensors()) {
		if o := g.Op(g.Tensor(t).Producer); s.Partial[t] && o.Phase == graph.Backward {
			names = append(names, o.Name)
		}
	}
	return names
}

// TestSumsOfGradients: a block's activation has its gradient reduced once (Megatron-LM's conjugate
// operator f, arXiv:1909.08053, figure 3), in whatever order the summands come, at the first sum that
// has all of the block's; sums that others read as well are reduced before.
func TestSumsOfGradients(t *testing.T) {
	type adder = func(name string, in ...graph.TensorID) graph.TensorID
	for _, rows := range []bool{false, true} {
		for _, order := range [][4]int{{3, 0, 1, 2}, {0, 3, 1, 2}, {2, 0, 3, 1}, {1, 2, 0, 3}} {
			g, s := gradientSums(t, rows, graph.F32, func(add adder, p [3]graph.TensorID, whole graph.TensorID) {
				all := [4]graph.TensorID{p[0], p[1], p[2], whole}
				y := all[order[0]]
				for k, at := range order[1:] {
					y = add(fmt.Sprintf("sum %d", k), y, all[at])
				}
			})
			want := "sum 2"
			if order[3] == 3 { // what is whole comes last
				want = "sum 1"
			}
			if got := reducedIn(g, s); len(got) != 1 || got[0] != want {
				t.Errorf("rows %v, %v: reduced are %q, want %q", rows, order, got, want)
			}
		}
		for _, c := range []struct {
			name  string
			build func(add adder, p [3]graph.TensorID, whole graph.TensorID)
			want  []string
		}{
			{"at once", func(add adder, p [3]graph.TensorID, whole graph.TensorID) { add("all", whole, p[0], p[1], p[2]) }, []string{"all"}},
			{"pairs", func(add adder, p [3]graph.TensorID, whole graph.TensorID) {
				add("all", add("left", p[0], p[1]), add("right", whole, p[2]))
			}, []string{"all"}},
			{"read twice", func(add adder, p [3]graph.TensorID, whole graph.TensorID) {
				y := add("one", whole, p[0])
				add("all", y, p[1], p[2])
				add("other", y, whole)
			}, []string{"of q", "all"}},
			{"one alone", func(add adder, p [3]graph.TensorID, whole graph.TensorID) { add("one", whole, p[0]) }, []string{"of q", "of k", "of v"}},
		} {
			g, s := gradientSums(t, rows, graph.F32, c.build)
			if got := fmt.Sprint(reducedIn(g, s)); got != fmt.Sprint(c.want) {
				t.Errorf("rows %v, %s: reduced are %s, want %s", rows, c.name, got, c.want)
			}
		}
	}
}

// TestSumsOfCastGradients: what products give in 16 bits and is added up in 32, as under autocast, is
// reduced once as well, in 16 bits.
func TestSumsOfCastGradients(t *testing.T) {
	for _, rows := range []bool{false, true} {
		g, s := gradientSums(t, rows, graph.BF16, func(add func(string, ...graph.TensorID) graph.TensorID, p [3]graph.TensorID, whole graph.TensorID) {
			add("all", add("two", add("one", whole, p[0]), p[1]), p[2])
		})
		if got := reducedIn(g, s); len(got) != 1 || got[0] != "all" {
			t.Fatalf("rows %v: reduced are %q, want the last sum", rows, got)
		}
		for x := range graph.TensorID(g.NumTensors()) {
			if o := g.Op(g.Tensor(x).Producer); s.Partial[x] && o.Name == "all" && s.Narrow[x] != 2 {
				t.Errorf("rows %v: reduced %d times as narrow as f32", rows, s.Narrow[x])
			}
		}
	}
}
