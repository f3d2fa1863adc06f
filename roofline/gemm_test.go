package roofline

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
	"placer/units"
)

// By hand: one multiprocessor of 1 TFLOP/s, no operand cost, no ends.
func TestProductByHand(t *testing.T) {
	p := GEMMParams{Peak: 0.5}
	for _, c := range []struct {
		name string
		p    GEMMParams
		m    graph.GEMM
		sms  int
		want float64
	}{
		// One tile of [256,128], 2*256*128*1024 operations at half the rate.
		{"a full tile", p, graph.GEMM{Batch: 1, M: 256, N: 128, K: 1024}, 1, 2 * 256 * 128 * 1024 / 0.5e12},
		// The smallest tile that covers [1,1] is [64,32], [32,64], [128,16] or [16,128].
		{"a corner of the smallest tile", p, graph.GEMM{Batch: 1, M: 1, N: 1, K: 100}, 1, 2 * 64 * 32 * 100 / 0.5e12},
		{"a batch of tiles", p, graph.GEMM{Batch: 3, M: 256, N: 128, K: 64}, 1, 3 * 2 * 256 * 128 * 64 / 0.5e12},
		// Of two multiprocessors each takes half of the columns.
		{"two multiprocessors", p, graph.GEMM{Batch: 1, M: 256, N: 128, K: 64}, 2, 2 * 256 * 64 * 64 / 0.25e12},
		// Three equal tiles on two multiprocessors: two waves where the tail is lost.
		{"a lost tail", GEMMParams{Peak: 0.5, Tail: 1}, graph.GEMM{Batch: 3, M: 32, N: 64, K: 64}, 2, 2 * 2 * 32 * 64 * 64 / 0.25e12},
		{"a shared tail", p, graph.GEMM{Batch: 3, M: 32, N: 64, K: 64}, 2, 1.5 * 2 * 32 * 64 * 64 / 0.25e12},
		// Tiles of [32,64] cost 1 + 16*(1/32+1/64) = 1.75 times their operations.
		{"operands", GEMMParams{Peak: 0.5, Feed: 16}, graph.GEMM{Batch: 1, M: 32, N: 64, K: 64}, 1, 1.75 * 2 * 32 * 64 * 64 / 0.5e12},
		// Half of the ends goes with the tile, half with its area, 1/16 of [256,128].
		{"ends", GEMMParams{Peak: 0.5, Ends: 1e-6}, graph.GEMM{Batch: 1, M: 32, N: 64, K: 64}, 1, 2*32*64*64/0.5e12 + 0.5e-6 + 0.5e-6/16},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := float64(c.p.product(c.m, 1e12, c.sms, 1e12)); math.Abs(got-c.want) > 1e-12*c.want {
				t.Errorf("%+v takes %g, want %g", c.m, got, c.want)
			}
		})
	}
}

// A deep product with one tile is cut up: 16 parts of depth 256 on 16
// multiprocessors, and 16 partial results of 32*64 written and read.
func TestProductSplitsItsDepth(t *testing.T) {
	p := GEMMParams{Peak: 1}
	const rate, bandwidth = 1e12, 1e9
	m := graph.GEMM{Batch: 1, M: 32, N: 64, K: 4096}
	parts := func(s float64) float64 {
		x := 2 * 32 * 64 * 4096 / s / (rate / 16)
		if s > 1 {
			x += s * 2 * 4 * 32 * 64 / bandwidth
		}
		return x
	}
	want := math.Inf(1)
	for _, s := range splits {
		want = min(want, parts(s))
	}
	if got := float64(p.product(m, rate, 16, bandwidth)); math.Abs(got-want) > 1e-12*want || want >= parts(1) {
		t.Errorf("takes %g, want %g (undivided %g)", got, want, parts(1))
	}
}

func TestProductProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.Int64Range(1, 5000)
		m := graph.GEMM{Batch: rapid.Int64Range(1, 40).Draw(t, "batch"), M: dim.Draw(t, "m"), N: dim.Draw(t, "n"), K: dim.Draw(t, "k")}
		p := GEMMParams{
			Peak: rapid.Float64Range(0.1, 1).Draw(t, "peak"), Feed: rapid.Float64Range(0, 60).Draw(t, "feed"),
			Ends: units.Seconds(rapid.Float64Range(0, 3e-6).Draw(t, "ends")), Tail: rapid.Float64Range(0, 1).Draw(t, "tail"),
		}
		sms := rapid.IntRange(1, 150).Draw(t, "sms")
		const rate, bandwidth = 10e12, 700e9
		x := p.product(m, rate, sms, bandwidth)
		if floor := m.FLOPs().Over(rate); !(x >= floor) {
			t.Fatalf("%+v takes %v, less than %v at the peak", m, x, floor)
		}
		if y := p.product(graph.GEMM{Batch: m.Batch, M: m.N, N: m.M, K: m.K}, rate, sms, bandwidth); y != x {
			t.Fatalf("%+v takes %v, its transpose %v", m, x, y)
		}
		larger := m
		larger.M += rapid.Int64Range(0, 100).Draw(t, "more")
		if y := p.product(larger, rate, sms, bandwidth); y < x {
			t.Fatalf("%+v takes %v, with more rows %v", m, x, y)
		}
		if y := p.product(m, 2*rate, sms, bandwidth); y > x {
			t.Fatalf("%+v takes %v, at twice the rate %v", m, x, y)
		}
	})
}
