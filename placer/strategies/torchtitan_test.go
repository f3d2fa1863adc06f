package strategies

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/workloads"
)

// TestPublishedCut compares the gain of the exact cut over torchtitan's default, an even number of
// layers a stage with embedding and output counted as one each, with the published gain of its
// automatic cut on four RTX 3090 (torchtitan pull request 2113, README.md of
// torchtitan/experiments/autopartition): the same sign, and the size within a third. The
// settings are the pull request's own: llama3_tain_spec.py (16 heads without groups, a vocabulary
// of 2,048) and train_configs/debug_model.toml (1F1B, 32 sequences of 2,048, one at a time,
// AdamW). With pipeline parallelism alone torchtitan trains in f32. It computes every second
// layer's activations again; here all layers' or none are.
func TestPublishedCut(t *testing.T) {
	var file bytes.Buffer
	card, err := hw.FindCard("rtx3090")
	if err != nil {
		t.Fatal(err)
	}
	if err := (hw.Template{Name: "3090s", Cards: slices.Repeat([]hw.Card{card}, 4)}).Write(&file); err != nil {
		t.Fatal(err)
	}
	m, err := hw.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		hidden, layers int
		stages         []int // layers; the output is one more of the last, the embedding of the first
		published      float64
	}{
		{2048, 12, []int{3, 4, 3, 2}, 0.280},
		{4096, 12, []int{3, 4, 3, 2}, 0.289},
		{1024, 16, []int{4, 5, 4, 3}, 0.164},
		{1024, 24, []int{6, 7, 6, 5}, 0.119},
		{2048, 24, []int{6, 7, 6, 5}, 0.127},
	} {
		name := fmt.Sprintf("llama:layers=%d,hidden=%d,heads=16,kv_heads=16,ffn=%d,vocab=2048,seq=2048,dtype=f32,attention=products", p.layers, p.hidden, (8*p.hidden/3+255)/256*256)
		f := func(batch int64) (*graph.Graph, error) { return workloads.BuildBatch(name, batch) }
		x, err := NewComparison(source(), f, m, Config{Batch: 32, MicroBatches: 32, Stages: p.stages, Eager: true, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		exact := x.best(context.Background(), NamePipeline, []strategy.Strategy{piped(strategy.OneFOneB, 4, 32, 1)})
		if exact.Result == nil {
			t.Fatal(exact.Why)
		}
		given := x.given(exact.Strategy)
		if given.Result == nil {
			t.Fatal(given.Why)
		}
		if given.Overflow > 0 || exact.Overflow > 0 {
			t.Errorf("hidden %d, %d layers: default lacks %v, exact cut %v", p.hidden, p.layers, given.Overflow, exact.Overflow)
		}
		gain := given.Seconds/exact.Seconds - 1
		tokens := func(r Row) float64 { return 32 * 2048 / r.Seconds / 4 } // torchtitan divides by the devices
		t.Logf("hidden %d, %d layers: default %.0f tokens/s a device, exact cut %.0f (%v), %+.1f%%, published %+.1f%%", p.hidden, p.layers, tokens(given), tokens(exact), exact.Strategy, 100*gain, 100*p.published)
		if math.Abs(gain/p.published-1) > 1.0/3 {
			t.Errorf("hidden %d, %d layers: the exact cut gains %.1f%%, published %.1f%%: off by more than a third", p.hidden, p.layers, 100*gain, 100*p.published)
		}
	}
}
