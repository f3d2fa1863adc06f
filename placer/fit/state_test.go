package fit

import (
	"strings"
	"testing"

	"placer/graph"
	"placer/workloads"
)

// TestOptimizerState: bytes a parameter of weight, gradient and state as they are counted, and
// with f32 copies and state: Adam's 16 are those of ZeRO (SC 2020, section 3.1).
func TestOptimizerState(t *testing.T) {
	const llama = "llama:layers=1,hidden=64,heads=4,kv_heads=2,ffn=32,seq=8,vocab=50"
	for name, want := range map[string][]string{
		llama + ",dtype=bf16,optimizer=adam":        {"the weights' own type, bf16: 8 bytes a parameter", "it would be 16, "},
		llama + ",dtype=f16,optimizer=momentum":     {"own type, f16: 6 bytes a parameter", "it would be 12, "},
		llama + ",dtype=bf16,optimizer=sgd":         nil,
		llama + ",dtype=bf16,optimizer=none":        nil,
		llama + ",dtype=f32,optimizer=adam":         nil,
		"rnnlm:layers=1,unroll=2,hidden=8,vocab=16": nil,
	} {
		g, err := workloads.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		got := OptimizerState(g)
		if (got == "") != (want == nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q, want %q in it", name, got, w)
			}
		}
	}
}

// All weights have slots: what is missing is 8 bytes a parameter under Adam, the 16 bytes less
// those 8 that are counted.
func TestOptimizerStateInAll(t *testing.T) {
	g, err := workloads.Build("vit:layers=1,hidden=64,heads=4,ffn=128,size=32,classes=10")
	if err != nil {
		t.Fatal(err)
	}
	var params, have int64
	for i, n := range slotsOf(g) {
		o := g.Op(graph.OpID(i))
		params += o.Params
		if n != 0 && n != 2 {
			t.Errorf("%s has %d slots", o.Name, n)
		}
		if n == 2 {
			have += o.Params
		}
	}
	if have == 0 || have != params {
		t.Errorf("%d of %d parameters have slots", have, params)
	}
}
