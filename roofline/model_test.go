package roofline

import (
	"fmt"
	"testing"

	"placer/graph"
	"placer/hw"
)

func TestEveryOpTakesTime(t *testing.T) {
	b := graph.NewBuilder("ops")
	for _, k := range []graph.Kind{"Placeholder", "VariableV2", "Const", "Identity", "MatMul", "Conv2D", "Add", "Sum", "ConcatV2", "Gather", "MaxPool", "ApplyAdam", "Mystery"} {
		b.Op(graph.Op{Name: string(k), Kind: k, Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Bytes: 4096})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hw.Names() {
		m, err := hw.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(g, m, Default())
		if err != nil {
			t.Fatal(err)
		}
		for d := range m.Devices {
			for i := range g.NumOps() {
				c := r.Cost(graph.OpID(i), d)
				if s := r.OpSeconds(graph.OpID(i), d); !(s > 0) || s != c.Seconds() {
					t.Errorf("%s on %s: %v, parts %+v", g.Op(graph.OpID(i)).Name, m.Devices[d].Name, s, c)
				}
			}
		}
	}
}

// benchGraph has n ops, a third of them products of 32 shapes, as unrolled
// recurrent networks have.
func benchGraph(tb testing.TB, n int) *graph.Graph {
	b := graph.NewBuilder("bench")
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Kind: "Add", Bytes: 1 << 20, FLOPs: 1 << 18, Forward: graph.None}
		if i%3 == 0 {
			o.Kind, o.GEMM = "MatMul", graph.GEMM{Batch: 1, M: 64, N: int64(128 * (1 + i%32)), K: 2048}
			o.FLOPs = o.GEMM.FLOPs()
		}
		b.Op(o, nil)
	}
	g, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func BenchmarkNew(b *testing.B) {
	g := benchGraph(b, 84_000)
	m, err := hw.Take("p100", 8, true)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := New(g, m, Default()); err != nil {
			b.Fatal(err)
		}
	}
}
