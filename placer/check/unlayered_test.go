package check_test

import (
	"fmt"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/check"
	"placer/placer/problem"
	"placer/plan"
)

// A graph that names neither layers nor modules has ops to move, by their names; in one that does,
// what has none is called so.
func TestUnlayered(t *testing.T) {
	for layer, want := range map[int32]string{0: "move product0 (", 1: "move the ops of no layer ("} {
		b := graph.NewBuilder("products")
		for k := range 6 {
			o := graph.Op{Name: fmt.Sprint("product", k), Kind: "MatMul", FLOPs: 1e9, Forward: graph.None}
			if k >= 2 {
				o.Layer = layer
			}
			b.Op(o, nil, graph.Tensor{DType: graph.F32, Bytes: 4})
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		m, err := hw.Take("a100", 2, false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := check.Check(t.Context(), &check.Case{Source: problem.Source{Graph: g}, Machine: m, Placement: &check.Placement{Decision: plan.Decision{Device: []uint8{0, 0, 0, 0, 0, 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, f := range r.Findings {
			said += f.Fix + "\n"
		}
		if !strings.Contains(said, want) {
			t.Errorf("layer %d: %q, want %q", layer, said, want)
		}
	}
}
