package roofline

import (
	"fmt"
	"math"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// publishedAttention are TFLOP/s that others measured of attention in one kernel, in 16 bits.
// Operations of causal attention count half. Sources:
//   - dao: FlashAttention-2's paper (arXiv:2307.08691, section 4), the best rates on an A100:
//     73% of the peak forward, 63% backward.
//   - a100: liangan1/GPU_travel, performance/flash-attn/README.md at commit 07d0469,
//     FlashAttention-2 on an A100 whose clock power limits to 1,200 MHz of 1,410.
//   - h100-64: Dao-AILab/flash-attention, pull request 2688, FlashAttention-2, hidden size 2,048.
//   - h100-128: the same, pull request 1791, beside FlashAttention-3: 659 forward, 554 backward.
//   - b200: the same, pull requests 2605 (forward) and 2280 (backward), FlashAttention-4.
//   - 4090: apache/tvm, tl_doc/flash_perf.md, FlashAttention-2 at 2,048 tokens.
//   - a5000: gpu-mode/ring-attention, issue 10, FlashAttention-2, hidden size 2,048.
var publishedAttention = []struct {
	source, gpu              string
	batch, queries, keys     int64
	heads, columns           int64
	causal                   bool
	forward, backward, ratio float64 // ratio: by how much a prediction may differ
}{
	{"dao", "a100", 2, 8192, 8192, 16, 128, false, 0.73 * 312, 0.63 * 312, 1.05},
	{"a100", "a100", 16, 1024, 1024, 32, 128, false, 177.67, 0, 1.35},
	{"a100", "a100", 4, 1024, 4096, 32, 128, false, 183.27, 0, 1.35},
	{"a100", "a100", 1, 4096, 4096, 32, 128, false, 185.64, 0, 1.35},
	{"a100", "a100", 16, 1024, 1024, 32, 128, true, 143.70, 0, 1.35},
	{"a100", "a100", 1, 4096, 4096, 32, 128, true, 156.27, 0, 1.40},
	{"h100-64", "h100", 32, 512, 512, 32, 64, false, 252.49, 189.86, 1.15},
	{"h100-64", "h100", 16, 1024, 1024, 32, 64, false, 294.78, 238.75, 1.15},
	{"h100-64", "h100", 8, 2048, 2048, 32, 64, false, 308.09, 263.71, 1.15},
	{"h100-64", "h100", 4, 4096, 4096, 32, 64, false, 311.97, 279.80, 1.15},
	{"h100-64", "h100", 2, 8192, 8192, 32, 64, false, 310.20, 299.23, 1.15},
	{"h100-128", "h100", 2, 8192, 8192, 16, 128, false, 369.9, 290.6, 1.10},
	{"h100-128", "h100", 2, 8192, 8192, 16, 128, true, 284.1, 287.1, 1.35},
	{"b200", "b200", 4, 8192, 8192, 16, 128, false, 1358, 1247.5, 1.10},
	{"b200", "b200", 4, 8192, 8192, 32, 64, false, 758, 0, 1.60},
	{"4090", "rtx4090", 8, 2048, 2048, 32, 64, false, 168.91, 124.81, 1.35},
	{"4090", "rtx4090", 8, 2048, 2048, 16, 128, false, 169.28, 124.57, 1.35},
	{"4090", "rtx4090", 8, 2048, 2048, 32, 64, true, 142.23, 96.53, 1.35},
	{"4090", "rtx4090", 8, 2048, 2048, 16, 128, true, 151.19, 99.23, 1.35},
	{"a5000", "rtxa5000", 32, 512, 512, 32, 64, false, 84.08, 52.88, 1.35},
	{"a5000", "rtxa5000", 8, 2048, 2048, 32, 64, false, 81.31, 70.07, 1.35},
	{"a5000", "rtxa5000", 2, 8192, 8192, 32, 64, false, 81.86, 77.42, 1.35},
}

// cards that are no built-in machines, by their data sheets: rates with sums in f32.
var cards = map[string]hw.Device{
	"rtx4090":  {Arch: "sm_89", SMs: 128, MemoryBandwidth: 1008e9, Peak: map[string]units.FLOPsPerSecond{"f32": 82.6e12, "f16": 165.2e12, "bf16": 165.2e12}},
	"rtxa5000": {Arch: "sm_86", SMs: 64, MemoryBandwidth: 768e9, Peak: map[string]units.FLOPsPerSecond{"f32": 27.8e12, "f16": 111.1e12, "bf16": 111.1e12}},
}

// TestPublishedAttention holds predictions beside them.
func TestPublishedAttention(t *testing.T) {
	for _, c := range publishedAttention {
		d, ok := cards[c.gpu]
		if !ok {
			m, err := hw.Take(c.gpu, 1, false)
			if err != nil {
				t.Fatal(err)
			}
			d = m.Devices[0]
		}
		seen := c.keys
		share := 1.
		if c.causal {
			seen, share = graph.Seen(c.queries, c.keys-c.queries, 0), 0.5
		}
		a := graph.Attending{Heads: c.batch * c.heads, Queries: c.queries, Seen: seen, KeyDim: c.columns, ValueDim: c.columns}
		size := 2 * c.batch * c.heads * c.columns
		x := newDeviceModel(&d, Default())
		ops := 4 * float64(c.batch*c.heads*c.columns) * float64(c.queries) * float64(c.keys) * share
		text := ""
		for _, w := range []struct {
			kind      graph.Kind
			m         graph.GEMM
			bytes     int64
			ops, want float64
		}{
			{graph.Attention, a.Forward(), size * (2*c.queries + 2*c.keys), ops, c.forward},
			{graph.AttentionGrad, a.Backward(), size * (4*c.queries + 4*c.keys), 2.5 * ops, c.backward},
		} {
			if w.want == 0 {
				continue
			}
			o := graph.Op{Kind: w.kind, DType: graph.BF16, GEMM: w.m, FLOPs: w.m.FLOPs(), Bytes: units.Bytes(w.bytes)}
			got := w.ops / float64(x.cost(&o).Seconds()) / 1e12
			text += fmt.Sprintf("  %s %.0f for %.0f (%.2f)", w.kind, got, w.want, w.want/got)
			if r := math.Exp(math.Abs(math.Log(got / w.want))); r > c.ratio {
				t.Errorf("%s: %d x %d by %d, %d heads of %d, causal %v: %s at %.0f TFLOP/s, published %.0f", c.source, c.batch, c.queries, c.keys, c.heads, c.columns, c.causal, w.kind, got, w.want)
			}
		}
		t.Logf("%-9s %2d x %d by %d, %d heads of %d, causal %v:%s", c.source, c.batch, c.queries, c.keys, c.heads, c.columns, c.causal, text)
	}
}
