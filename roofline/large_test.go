package roofline

import (
	"math"
	"testing"

	"placer/graph"
	"placer/hw"
)

// TestLargeProducts: products of 8,192 in each dimension and random data beside what PyTorch reached: 257
// TFLOP/s on an A100 at its power limit of 400 W, in f16 (Horace He, thonking.ai, Strangely, matrix
// multiplications on GPUs run faster when given predictable data), 798 on an H100, in bf16
// (docs/hardware.md).
func TestLargeProducts(t *testing.T) {
	for name, c := range map[string]struct {
		dtype    graph.DType
		measured float64
	}{"a100": {graph.F16, 257e12}, "h100": {graph.BF16, 798e12}} {
		m, err := hw.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		d, g := &m.Devices[0], graph.GEMM{Batch: 1, M: 8192, N: 8192, K: 8192}
		s := Sample{Kind: "MatMul", DType: c.dtype, GEMM: g, Bytes: 3 * 2 * 8192 * 8192}
		got := float64(g.FLOPs()) / float64(Predict([]Sample{s}, d, builtin[d.Arch])[0])
		t.Logf("%s: %.0f TFLOP/s, measured %.0f", name, got/1e12, c.measured/1e12)
		if math.Abs(got/c.measured-1) > 0.1 {
			t.Errorf("%s: %.4g FLOP/s, measured %.4g", name, got, c.measured)
		}
	}
}
