package roofline

import (
	"math"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// TestMuon: an update whose rule multiplies, as placer_torch writes it, takes about as long as its
// products one by one, of each of Newton and Schulz' five iterations X X', its square and the product of
// that with X, in bf16 (Keller Jordan, 2024; torch.optim.Muon), and a fraction of what as many
// operations take that are no products.
func TestMuon(t *testing.T) {
	for _, name := range []string{"a100", "h100"} {
		m, err := hw.Take(name, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ rows, columns int64 }{{768, 768}, {768, 3072}, {1024, 4096}, {4096, 4096}, {4096, 11008}} {
			s, n := c.rows, c.columns
			b := graph.NewBuilder("update")
			products := []graph.GEMM{{Batch: 1, M: s, N: s, K: n}, {Batch: 1, M: s, N: s, K: s}, {Batch: 1, M: s, N: n, K: s}}
			bytes := units.Bytes(2 * 5 * ((s*n + s*s) + 2*s*s + (s*s + 2*s*n)))
			whole := graph.Op{Name: "update", Kind: "ApplyMuon", Phase: graph.Update, DType: graph.BF16, Repeats: 5, Kernels: 3, GEMM: graph.GEMM{Batch: 1, M: s, N: s, K: 2*n + s}, Bytes: bytes, Forward: graph.None}
			if s == n {
				whole.Repeats, whole.Kernels, whole.GEMM.K = 15, 0, s
			}
			for _, p := range products {
				whole.FLOPs += 5 * p.FLOPs()
			}
			b.Op(whole, nil)
			elementwise := whole
			elementwise.Name, elementwise.GEMM, elementwise.DType = "elementwise", graph.GEMM{}, graph.F32
			b.Op(elementwise, nil)
			for k, p := range products {
				b.Op(graph.Op{Name: "product" + string('0'+rune(k)), Kind: "MatMul", DType: graph.BF16, GEMM: p, FLOPs: p.FLOPs(), Bytes: units.Bytes(2 * (p.M*p.K + p.K*p.N + p.M*p.N)), Forward: graph.None}, nil)
			}
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			r, err := New(g, m, Default())
			if err != nil {
				t.Fatal(err)
			}
			want := 0.0
			for k := range products {
				want += 5 * float64(r.OpSeconds(graph.OpID(2+k), 0))
			}
			got, before := float64(r.OpSeconds(0, 0)), float64(r.OpSeconds(1, 0))
			t.Logf("%s, %d x %d: %.4g s, product by product %.4g, as no products %.4g", name, s, n, got, want, before)
			if math.Abs(got/want-1) > 0.25 || before < 2*want && s > 1000 {
				t.Errorf("%s, %d x %d: %.4g s, product by product %.4g, as no products %.4g", name, s, n, got, want, before)
			}
		}
	}
}
