package fit

import (
	"strings"
	"testing"

	"placer/graph"
	"placer/units"
	"placer/workloads"
)

// TestOptimizerState: bytes a parameter of weight, gradient and state as they are counted, and
// the other way: Adam's 16 are those of ZeRO (SC 2020, section 3.1).
func TestOptimizerState(t *testing.T) {
	const llama = "llama:layers=1,hidden=64,heads=4,kv_heads=2,ffn=32,seq=8,vocab=50"
	for name, want := range map[string][]string{
		llama + ",dtype=bf16,optimizer=adam":                         {"the weights' type, bf16: 8 bytes a parameter", "with the flag (", "it is 16, "},
		llama + ",dtype=f16,optimizer=momentum":                      {"type, f16: 6 bytes a parameter", "it is 12, "},
		llama + ",dtype=bf16,optimizer=adam,master_weights=true":     {"the flag: f32 state", "beside weights of bf16: 16 bytes a parameter", "it would be 8, "},
		llama + ",dtype=f16,optimizer=momentum,master_weights=true":  {"beside weights of f16: 12 bytes a parameter", "it would be 6, "},
		llama + ",dtype=bf16,optimizer=sgd,master_weights=true":      {"beside weights of bf16: 8 bytes a parameter", "it would be 4, "},
		llama + ",dtype=bf16,optimizer=adam,batch=2,micro_batches=2": {"type, bf16: 8 bytes a parameter"},
		llama + ",dtype=bf16,optimizer=sgd":                          {"no state beside weights of bf16: 4 bytes a parameter", "with the flag (", "it would be 8, "},
		llama + ",dtype=bf16,optimizer=none":                         nil,
		llama + ",dtype=f32,optimizer=adam":                          nil,
		"rnnlm:layers=1,unroll=2,hidden=8,vocab=16":                  nil,
	} {
		g, err := workloads.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		got := OptimizerState(g, "the flag")
		if (got == "") != (want == nil) {
			t.Errorf("%s: %q", name, got)
		}
		if narrow := strings.Contains(got, "in the weights' type") || strings.Contains(got, "no state"); Narrow(g) != narrow {
			t.Errorf("%s: narrow is %v, want %v", name, !narrow, narrow)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q, want %q in it", name, got, w)
			}
		}
		// Of a step that came as it is nothing can be asked for.
		if as := OptimizerState(g, ""); (as == "") != (want == nil) || strings.Contains(as, "without") {
			t.Errorf("%s, as it is: %q", name, as)
		}
	}
}

// What a line says of all weights together is what the graphs differ by, and every parameter
// has state: 8 bytes more under Adam, the 16 less those 8 that are counted without.
func TestOptimizerStateInAll(t *testing.T) {
	const vit = "vit:layers=1,hidden=64,heads=4,ffn=128,size=32,classes=10"
	for name, want := range map[string]state{vit: {own: 2, trained: true}, vit + ",master_weights=true": {wide: 3, trained: true}} {
		g, err := workloads.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range statesOf(g) {
			if o := g.Op(graph.OpID(i)); (o.Params > 0) != (s != state{}) || o.Params > 0 && s != want {
				t.Errorf("%s: %s has state %+v, want %+v", name, o.Name, s, want)
			}
		}
		if line, in := OptimizerState(g, "it"), units.Bytes(8*g.Params()).String(); !strings.Contains(line, in+" ") {
			t.Errorf("%s: %q, want %s in it", name, line, in)
		}
	}
}
