package strategies

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
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

// A rank of attention in one kernel has a share of the heads, forward, backward and where it is
// computed again: together they do what one device does.
func TestAttentionIsShared(t *testing.T) {
	const batch, layers, keyHeads = 16, 2, 4
	name := fmt.Sprintf("llama:layers=%d,hidden=256,heads=8,ffn=512,seq=64,vocab=1000,kv_heads=%d", layers, keyHeads)
	for _, again := range []bool{false, true} {
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
				if o.GEMM.Batch != int64(batch*keyHeads/tensor) || o.GEMM.FLOPs() != o.FLOPs {
					t.Errorf("%d ranks, recomputed %v: %s is %+v of %v", tensor, again, o.Name, o.GEMM, o.FLOPs)
				}
			}
			if tensor == 1 {
				want = flops
			}
			forward := layers * tensor
			if again {
				forward += (layers - 1) * tensor // the last layer's gradient follows at once
			}
			if count[graph.AttentionGrad] != layers*tensor || count[graph.Attention] < forward || !maps.Equal(flops, want) {
				t.Errorf("%d ranks, recomputed %v: %v of %v operations, want %v", tensor, again, count, flops, want)
			}
		}
	}
}

// A rank of a decoding step keeps its own heads' keys and values of tokens before, whatever
// becomes of the scores: a layer has two all-reduces, behind attention and the feed-forward part.
func TestKeptHeadsAreShared(t *testing.T) {
	const config = `{"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 512, "torch_dtype": "float16"}`
	const batch, past, tensor = 16, 32, 4
	for _, kernels := range []int64{1, 3} {
		_, j := models8(t, small[0])
		x := newModels(func(batch int64) (*graph.Graph, error) {
			step, err := decoder.ImportConfig([]byte(config), "decoding", map[string]int64{"batch": batch, "seq": 1, "past": past, "attention_kernels": kernels})
			if err != nil {
				return nil, err
			}
			return step.Graph, nil
		}, batch)
		step, err := x.derive(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: tensor}, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20}, true)
		if err != nil {
			t.Fatal(err)
		}
		kept, products, collectives := int64(0), 0., map[int32]bool{}
		for i := range graph.OpID(step.Graph.NumOps()) {
			o := step.Graph.Op(i)
			if strings.HasSuffix(o.Name, "_cache") {
				kept += int64(o.Resident)
			}
			if o.Kind == graph.Attention || o.Kind == "BatchMatMul" {
				products += float64(o.GEMM.FLOPs())
			}
			if c := step.Collective[i]; c >= 0 {
				collectives[c] = true
			}
		}
		const layers, columns = 3, 256 / 8
		if want := int64(layers * 2 * batch * 4 * past * columns * 2 / tensor); kept != want {
			t.Errorf("%d kernels: keeps %d bytes, want %d", kernels, kept, want)
		}
		if want := float64(layers * 4 * batch * 8 * (past + 1) * columns / tensor); products != want {
			t.Errorf("%d kernels: %g operations of attention, want %g", kernels, products, want)
		}
		if len(collectives) != 2*layers {
			t.Errorf("%d kernels: %d all-reduces, want %d", kernels, len(collectives), 2*layers)
		}
	}
}
