package roofline

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
	"placer/hw"
	"placer/internal/doctest"
	"placer/units"
)

// publishedAttention are TFLOP/s that others measured of attention in one kernel, in 16 bits.
// Operations of causal attention count half. Sources:
//   - A100, best of the paper: FlashAttention-2's (arXiv:2307.08691, section 4), 73% of the peak
//     forward and 63% backward, without the sizes: a long sequence is taken.
//   - A100 at 1,200 MHz: liangan1/GPU_travel, performance/flash-attn/README.md at commit 07d0469,
//     FlashAttention-2 on an A100 whose clock power limits to 1,200 MHz of 1,410.
//   - H100, heads of 64: Dao-AILab/flash-attention, pull request 2688, FlashAttention-2. It names no
//     GPU; the rates are an A100's peak, and those of its H100 elsewhere.
//   - H100, heads of 128: the same, pull request 1791, beside FlashAttention-3: 659 forward, 554 backward.
//   - B200: the same, pull requests 2605 (forward) and 2280 (backward), FlashAttention-4.
//   - RTX 4090: apache/tvm, tl_doc/flash_perf.md, FlashAttention-2 at 2,048
//     tokens; the batch is not stated.
//   - RTX A5000: gpu-mode/ring-attention, issue 10, FlashAttention-2, hidden size 2,048.
var publishedAttention = []struct {
	name, gpu                string
	batch, queries, keys     int64
	heads, columns           int64
	causal                   bool
	forward, backward, ratio float64 // ratio: by how much a prediction may differ
}{
	{"A100, best of the paper", "a100", 2, 8192, 8192, 16, 128, false, 0.73 * 312, 0.63 * 312, 1.05},
	{"A100 at 1,200 MHz", "a100", 16, 1024, 1024, 32, 128, false, 177.67, 0, 1.35},
	{"A100 at 1,200 MHz", "a100", 4, 1024, 4096, 32, 128, false, 183.27, 0, 1.35},
	{"A100 at 1,200 MHz", "a100", 1, 4096, 4096, 32, 128, false, 185.64, 0, 1.35},
	{"A100 at 1,200 MHz", "a100", 16, 1024, 1024, 32, 128, true, 143.70, 0, 1.35},
	{"A100 at 1,200 MHz", "a100", 1, 4096, 4096, 32, 128, true, 156.27, 0, 1.40},
	{"H100", "h100", 32, 512, 512, 32, 64, false, 252.49, 189.86, 1.15},
	{"H100", "h100", 16, 1024, 1024, 32, 64, false, 294.78, 238.75, 1.15},
	{"H100", "h100", 8, 2048, 2048, 32, 64, false, 308.09, 263.71, 1.15},
	{"H100", "h100", 4, 4096, 4096, 32, 64, false, 311.97, 279.80, 1.15},
	{"H100", "h100", 2, 8192, 8192, 32, 64, false, 310.20, 299.23, 1.15},
	{"H100", "h100", 2, 8192, 8192, 16, 128, false, 369.9, 290.6, 1.10},
	{"H100", "h100", 2, 8192, 8192, 16, 128, true, 284.1, 287.1, 1.35},
	{"B200", "b200", 4, 8192, 8192, 16, 128, false, 1358, 1247.5, 1.10},
	{"B200", "b200", 4, 8192, 8192, 32, 64, false, 758, 0, 1.60},
	{"RTX 4090", "rtx4090", 8, 2048, 2048, 32, 64, false, 168.91, 124.81, 1.35},
	{"RTX 4090", "rtx4090", 8, 2048, 2048, 16, 128, false, 169.28, 124.57, 1.35},
	{"RTX 4090", "rtx4090", 8, 2048, 2048, 32, 64, true, 142.23, 96.53, 1.35},
	{"RTX 4090", "rtx4090", 8, 2048, 2048, 16, 128, true, 151.19, 99.23, 1.35},
	{"RTX A5000", "rtxa5000", 32, 512, 512, 32, 64, false, 84.08, 52.88, 1.35},
	{"RTX A5000", "rtxa5000", 8, 2048, 2048, 32, 64, false, 81.31, 70.07, 1.35},
	{"RTX A5000", "rtxa5000", 2, 8192, 8192, 32, 64, false, 81.86, 77.42, 1.35},
}

// cards that are no built-in machines, by their data sheets: rates with sums in f32.
var cards = map[string]hw.Device{
	"rtx4090":  {Arch: "sm_89", SMs: 128, MemoryBandwidth: 1008e9, Peak: map[string]units.FLOPsPerSecond{"f32": 82.6e12, "f16": 165.2e12, "bf16": 165.2e12}},
	"rtxa5000": {Arch: "sm_86", SMs: 64, MemoryBandwidth: 768e9, Peak: map[string]units.FLOPsPerSecond{"f32": 27.8e12, "f16": 111.1e12, "bf16": 111.1e12}},
}

// TestPublishedAttention holds predictions beside them, and the table of
// docs/hardware-models.md. Run with -update to rewrite it after a change of the model.
func TestPublishedAttention(t *testing.T) {
	var table strings.Builder
	table.WriteString("| GPU | sequences | heads | causal | forward | predicted | backward | predicted | within |\n|---|---:|---:|---|---:|---:|---:|---:|---:|\n")
	for _, c := range publishedAttention {
		seen, share, causal := c.keys, 1., ""
		if c.causal {
			seen, share, causal = graph.Seen(c.queries, c.keys-c.queries, 0), 0.5, "yes"
		}
		a := graph.Attending{Heads: c.batch * c.heads, Queries: c.queries, Seen: seen, KeyDim: c.columns, ValueDim: c.columns}
		size := 2 * c.batch * c.heads * c.columns
		d := cardOf(t, c.gpu)
		x := newDeviceModel(&d, Default())
		ops := 4 * float64(c.batch*c.heads*c.columns) * float64(c.queries) * float64(c.keys) * share
		length := fmt.Sprint(c.queries)
		if c.keys != c.queries {
			length += fmt.Sprintf(" by %d", c.keys)
		}
		fmt.Fprintf(&table, "| %s | %d x %s | %d of %d | %s |", c.name, c.batch, length, c.heads, c.columns, causal)
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
				table.WriteString(" | |")
				continue
			}
			o := graph.Op{Kind: w.kind, DType: graph.BF16, GEMM: w.m, FLOPs: w.m.FLOPs(), Bytes: units.Bytes(w.bytes)}
			got := w.ops / float64(x.cost(&o).Seconds()) / 1e12
			fmt.Fprintf(&table, " %.0f | %.0f |", w.want, got)
			if r := math.Exp(math.Abs(math.Log(got / w.want))); r > c.ratio {
				t.Errorf("%s: %d x %d by %d, %d heads of %d, causal %v: %s at %.0f TFLOP/s, published %.0f", c.name, c.batch, c.queries, c.keys, c.heads, c.columns, c.causal, w.kind, got, w.want)
			}
		}
		fmt.Fprintf(&table, " %.2f |\n", c.ratio)
	}
	stated, replace := doctest.Part(t, "../docs/hardware-models.md", "<!-- attention: go test ./roofline -run TestPublishedAttention -update -->\n", "<!-- attention end -->")
	if *update {
		replace(table.String())
	} else if stated != table.String() {
		t.Errorf("docs/hardware-models.md does not have this table:\n%s", table.String())
	}
}

// cardOf returns a card of a built-in machine, or one of cards.
func cardOf(t *testing.T, name string) hw.Device {
	t.Helper()
	if d, ok := cards[name]; ok {
		return d
	}
	m, err := hw.Take(name, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	return m.Devices[0]
}

// TestAttentionOfFewQueries: attention of a token behind many takes what reading their keys and
// values takes, whether few heads or many have them: parts of the keys fill the device.
func TestAttentionOfFewQueries(t *testing.T) {
	for _, gpu := range []string{"a100", "h100"} {
		for _, heads := range []int64{8, 64, 1024} {
			const past, columns = 16384, 128
			d := cardOf(t, gpu)
			x := newDeviceModel(&d, Default())
			m := graph.Attending{Heads: heads, Queries: 4, Seen: past, KeyDim: columns, ValueDim: columns}.Forward()
			o := graph.Op{Kind: graph.Attention, DType: graph.F16, GEMM: m, FLOPs: m.FLOPs(), Bytes: units.Bytes(2 * heads * columns * (2*past + 2*4))}
			if c := x.cost(&o); c.Compute > 2*c.Memory+10e-6 {
				t.Errorf("%s: %d heads compute for %v and read for %v", gpu, heads, c.Compute, c.Memory)
			}
		}
	}
}

// TestAttentionProperties: no attention is faster than the peak allows, and none takes less time
// for more of anything.
func TestAttentionProperties(t *testing.T) {
	d := cardOf(t, "a100")
	rapid.Check(t, func(t *rapid.T) {
		x := newDeviceModel(&d, Default())
		a := graph.Attending{Heads: rapid.Int64Range(1, 300).Draw(t, "heads"), Queries: rapid.Int64Range(1, 3000).Draw(t, "queries"), Seen: rapid.Int64Range(1, 5000).Draw(t, "keys"), KeyDim: 64, ValueDim: 64}
		seconds := func(a graph.Attending, kind graph.Kind) units.Seconds {
			m := a.Forward()
			if kind == graph.AttentionGrad {
				m = a.Backward()
			}
			return x.cost(&graph.Op{Kind: kind, DType: graph.BF16, GEMM: m, FLOPs: m.FLOPs(), Bytes: 1}).Compute
		}
		for _, kind := range []graph.Kind{graph.Attention, graph.AttentionGrad} {
			one := seconds(a, kind)
			m := a.Forward()
			if kind == graph.AttentionGrad {
				m = a.Backward()
			}
			if floor := m.FLOPs().Over(d.Peak["bf16"] + x.thin(graph.BF16)); one < floor {
				t.Fatalf("%+v: %s takes %v, less than %v at the peak", a, kind, one, floor)
			}
			more := a
			more.Heads *= 2
			if two := seconds(more, kind); two < one*(1-1e-9) {
				t.Fatalf("%+v: %s takes %v, with twice the heads %v", a, kind, one, two)
			}
		}
	})
}
