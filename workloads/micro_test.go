package workloads

import (
	"strings"
	"testing"

	"placer/graph"
)

// A step in micro-batches computes what the whole step does, with the same parameters, and
// leaves the order of the passes open.
func TestMicroBatches(t *testing.T) {
	for _, name := range []string{
		"llama:layers=3,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=16,batch=6",
		"moe:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=16,experts=4,batch=6",
	} {
		whole, parts := built(t, name), built(t, name+",micro_batches=3")
		forward, backward := products(whole)
		f, b := products(parts)
		if strings.HasPrefix(name, "moe") { // an expert's room is rounded up for each micro-batch
			if f < forward || float64(f) > 1.1*float64(forward) {
				t.Errorf("%s: %d FLOPs of forward products in parts, %d as one", name, f, forward)
			}
		} else if f != forward || b != backward {
			t.Errorf("%s: %d and %d FLOPs of products in parts, %d and %d as one", name, f, b, forward, backward)
		}
		if parts.Params() != whole.Params() {
			t.Errorf("%s: %d parameters in parts, %d as one", name, parts.Params(), whole.Params())
		}
		for i := range graph.OpID(parts.NumOps()) {
			if o := parts.Op(i); strings.Contains(o.Name, "end_of_") {
				t.Errorf("%s: %s orders the passes", name, o.Name)
			}
		}
	}
	for name, want := range map[string]string{
		"llama:batch=4,micro_batches=3":                "multiple of the 3 micro_batches",
		"llama:batch=4,micro_batches=2,optimizer=none": "without an optimizer",
		"vit:micro_batches=2":                          "unknown setting",
	} {
		if _, err := Build(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}
