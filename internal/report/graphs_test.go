package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"placer/graph"
	"placer/internal/report"
)

func TestModulesOf(t *testing.T) {
	build := func(modules ...string) *graph.Graph {
		b := graph.NewBuilder("g")
		for i, m := range modules {
			b.Op(graph.Op{Name: string(rune('a' + i)), Kind: "Relu", FLOPs: 10, Params: int64(i), Forward: graph.None, Module: m}, nil)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	got := report.ModulesOf(build("transformer.h.0", "", "head", "transformer.h.1.mlp"))
	want := []report.Module{{Name: "transformer", Ops: 2, FLOPs: 20, Parameters: 3}, {Name: "", Ops: 1, FLOPs: 10, Parameters: 1}, {Name: "head", Ops: 1, FLOPs: 10, Parameters: 2}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := report.ModulesOf(build("", "")); got != nil {
		t.Errorf("modules %v of a graph that names none", got)
	}
	var text strings.Builder
	doc := report.Import{Summary: report.Summary{Name: "g", Ops: 4}, GraphOps: 4, Repeated: 2, Iterations: 30, Modules: want}
	if err := doc.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"module transformer", "module (none)", "2 ops, 20 FLOP, 3 parameters", "ops that repeat, their iterations  2, 30"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no %q in\n%s", line, &text)
		}
	}
}
