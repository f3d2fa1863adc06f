package strategies

import (
	"strings"
	"testing"

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
