package strategies

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
)

// Tensor parallelism shares out heads of attention, whatever the samples of a micro-batch are:
// Megatron-LM has no rank of a part of the batch (arXiv:1909.08053, section 3), and heads of
// keys and values that several ranks would need are not modelled.
func TestHeadsAreShared(t *testing.T) {
	const size = "llama:layers=2,hidden=256,heads=8,ffn=512,seq=16,vocab=1000,kv_heads="
	for _, c := range []struct {
		name   string
		tensor int
		micro  []int // micro-batches of 16 samples
		want   string
	}{
		{size + "1", 8, []int{1, 2, 4, 16}, "heads of keys and values in its attention are 1, which 8 ranks cannot share evenly"},
		{size + "2", 4, []int{1, 4, 16}, "in its attention are 2, which 4 ranks"},
		{size + "2", 2, []int{1, 4, 16}, ""},
		{size + "8", 8, []int{1, 4, 16}, ""},
		{size + "8", 3, []int{1, 16}, "can be cut in a divisor of 8, not in 3"},
		{"vit:layers=2,hidden=192,heads=6,ffn=512,size=64,classes=16", 4, []int{1, 4, 8}, "in its attention are 6, which 4 ranks"},
		{"vit:layers=2,hidden=192,heads=6,ffn=512,size=64,classes=16", 2, []int{1, 4, 8}, ""},
	} {
		for _, micro := range c.micro {
			x, j := models8(t, c.name)
			_, err := x.derive(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: c.tensor}, MicroBatches: micro, Chunks: 1, Bucket: 1 << 20}, true)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s among %d ranks in %d micro-batches: %v, want %q", c.name, c.tensor, micro, err, c.want)
			}
		}
	}
}

// A rank of attention in one kernel has a share of the heads, forward, backward and where it is
// computed again: together they do what one device does.
func TestAttentionIsShared(t *testing.T) {
	const batch, layers, heads, keyHeads = 16, 2, 8, 4
	name := fmt.Sprintf("llama:layers=%d,hidden=256,heads=%d,ffn=512,seq=64,vocab=1000,kv_heads=%d", layers, heads, keyHeads)
	for _, again := range []strategy.Recompute{strategy.RecomputeNothing, strategy.RecomputeLayers} {
		want := map[graph.Kind]float64{}
		for _, tensor := range []int{1, 2, 4} {
			x, j := models8(t, name)
			step, err := x.derive(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: tensor}, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20, Recompute: again}, false)
			if err != nil {
				t.Fatal(err)
			}
			flops, count := map[graph.Kind]float64{}, map[graph.Kind]int{}
			for i := range graph.OpID(step.Graph.NumOps()) {
				o := step.Graph.Op(i)
				if o.Kind != graph.Attention && o.Kind != graph.AttentionGrad {
					continue
				}
				count[o.Kind]++
				flops[o.Kind] += float64(o.FLOPs)
				share := batch * keyHeads / tensor
				if o.Kind == graph.AttentionGrad { // a block for each head of queries
					share = batch * heads / tensor
				}
				if o.GEMM.Batch != int64(share) || o.GEMM.FLOPs() != o.FLOPs {
					t.Errorf("%d ranks, recomputed %v: %s is %+v of %v", tensor, again, o.Name, o.GEMM, o.FLOPs)
				}
			}
			if tensor == 1 {
				want = flops
			}
			forward := layers * tensor
			if again > strategy.RecomputeNothing {
				forward += (layers - 1) * tensor // the last layer's gradient follows at once
			}
			if count[graph.AttentionGrad] != layers*tensor || count[graph.Attention] < forward || !maps.Equal(flops, want) {
				t.Errorf("%d ranks, recomputed %v: %v of %v operations, want %v", tensor, again, count, flops, want)
			}
		}
	}
}
