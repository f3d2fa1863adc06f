package strategies

import (
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/units"
)

// mixture is a decoder of 16 experts, of which each token has 4, and a shared one.
const mixture = `{"model_type": "qwen2_moe", "torch_dtype": "bfloat16", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 512, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 512, "num_experts": 16, "num_experts_per_tok": 4, "vocab_size": 512}`

// TestExpertsAreSharedOut: replicas hold and compute of all experts each a D-th, of what all
// replicas' rows ask for, and send their rows there and back: (D-1)/D of four rows a token.
func TestExpertsAreSharedOut(t *testing.T) {
	_, j := models8(t, small[0])
	const batch = 32
	for _, past := range []int64{0, 64} {
		x := newModels(decoding([]byte(mixture), past, 1), batch)
		whole, err := x.graph(variant{batch, strategy.RecomputeNothing, 0})
		if err != nil {
			t.Fatal(err)
		}
		of := func(g *graph.Graph, what func(o *graph.Op) float64) (n float64) {
			for i := range graph.OpID(g.NumOps()) {
				if o := g.Op(i); strings.Contains(o.Name, "mlp/experts/") && !strings.Contains(o.Name, "AllToAll") {
					n += what(o)
				}
			}
			return n
		}
		flops := func(o *graph.Op) float64 {
			if o.GEMM.IsZero() {
				return 0
			}
			return float64(o.FLOPs)
		}
		params := func(o *graph.Op) float64 { return float64(o.Params) }
		busy := func(o *graph.Op) float64 { return float64(o.GEMM.Batch) }
		for _, s := range []string{"ddp=8 ep", "ddp=4 ep tp=2", "ddp=2 ep 1f1b=2 tp=2 mb=2"} {
			at, err := strategy.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			step, err := x.derive(j, at, false)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := of(step.Graph, params), of(whole, params); got != want {
				t.Errorf("%s: ranks hold %g parameters of experts, want %g", s, got, want)
			}
			if got, want := of(step.Graph, flops), of(whole, flops); got != want {
				t.Errorf("%s: experts do %g FLOPs, want %g", s, got, want)
			}
			if at.MicroBatches == 1 {
				if got, want := of(step.Graph, busy), of(whole, busy)*float64(at.Tensor); got != want {
					t.Errorf("%s: %g experts have rows, want %g", s, got, want)
				}
			}
			r, err := j.Run(step)
			if err != nil {
				t.Fatal(err)
			}
			sent := units.Bytes(0)
			for _, c := range step.Collectives {
				if c.Kind == strategy.AllToAll {
					sent += c.Sent() * units.Bytes(c.Ranks)
				}
			}
			rows := units.Bytes(batch * 4 * 256 * 2)                             // of f16, in a layer
			want := 2 * 2 * rows * units.Bytes(at.Data-1) / units.Bytes(at.Data) // each row once, whatever ranks share products
			if sent != want || r.Traffic < want {
				t.Errorf("%s: %v of rows are sent, of %v in all, want %v", s, sent, r.Traffic, want)
			}
			folded, err := x.derive(j, at, true)
			if err != nil {
				t.Fatal(err)
			}
			if at.Pipeline > 1 {
				continue
			}
			one, err := j.Run(folded)
			if err != nil {
				t.Fatal(err)
			}
			if d := one.Seconds/r.Seconds - 1; d > 0.01 || d < -0.01 {
				t.Errorf("%s: %g s where one rank stands for all, %g s as all", s, one.Seconds, r.Seconds)
			}
		}
	}
}

// TestExpertsCannotBeShared: why not is said.
func TestExpertsCannotBeShared(t *testing.T) {
	_, j := models8(t, small[0])
	for _, c := range []struct {
		f          Family
		text, want string
	}{
		{decoding(configs(t)["Llama-3.2-1B"], 0, 1), "ddp=2 ep", "has no experts"},
		{decoding([]byte(strings.Replace(mixture, `"num_experts": 16`, `"num_experts": 15`, 1)), 0, 1), "ddp=4 ep", "cannot share 15 experts"},
		{family(small[2]), "ddp=2 ep", "it has no experts"},
		{family(small[1]), "ddp=8 ep", "cannot share 4 experts"},
	} {
		s, err := strategy.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newModels(c.f, 8).derive(j, s, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
