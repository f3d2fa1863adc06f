package roofline

import (
	"math"

	"placer/graph"
	"placer/units"
)

// tiles are the output tiles that a library's kernels come in, largest first.
// Every product runs on the one that suits it best, as a library's heuristic or
// an autotuner picks it.
var tiles = [...][2]float64{{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {32, 64}, {128, 16}, {16, 128}}

// splits are the numbers of parts into which kernels cut the depth of a product
// that has too few tiles; minDepth is the least depth of a part.
var splits = [...]float64{1, 2, 4, 8, 16}

const minDepth = 128

// GEMMParams are the constants of the matrix-product model for one architecture
// and element type.
type GEMMParams struct {
	// Peak is the fraction of the peak rate that an endless product would reach on
	// endless tiles, (0,1].
	Peak float64
	// Feed is the cost of fetching operands, which a tile of [a,b] does 1/a + 1/b
	// times per operation: it runs at 1/(1 + Feed*(1/a+1/b)) of the rate.
	Feed float64
	// Ends is the time that starting and ending a tile of [256,128] takes: filling
	// the pipeline, which does not depend on the tile, and writing it, which goes
	// with its area, half each.
	Ends units.Seconds
	// Tail is how much of a last, partly filled wave of tiles is lost, [0,1]: 1
	// where every multiprocessor waits for the last, 0 where they share the work.
	Tail float64
	// Fixed is the kernel time of an empty product.
	Fixed units.Seconds
	// Memory is the fraction of the peak bandwidth that operands and result get; 0:
	// Params.Products.
	Memory float64
	// Odd is how many times as long a product takes whose rows are no multiple of 16
	// bytes, which matrix units load as one; 0 stands for 1.
	Odd float64
}

// odd reports whether a row of an operand or of the result of m, row by row in
// memory, is no multiple of 16 bytes.
func odd(m graph.GEMM, t graph.DType) bool { return m.K*t.Size()%16 != 0 || m.N*t.Size()%16 != 0 }

// product returns the time of m without launch and fixed time, on sms
// multiprocessors with a peak of rate in all. The partial sums of a depth that
// is split are written and read once, at 4 bytes each, over bandwidth.
//
// A tile of [a,b] with depth k takes 2*a*b*k operations at its
// multiprocessor's share of the rate, as lowered by Feed, plus its ends; tiles
// come in waves of sms.
func (p *GEMMParams) product(m graph.GEMM, rate units.FLOPsPerSecond, sms int, bandwidth units.BytesPerSecond) units.Seconds {
	best := math.Inf(1)
	perSM := float64(rate) * p.Peak / float64(sms)
	partial := 2 * 4 * float64(m.Batch) * float64(m.M) * float64(m.N) / float64(bandwidth)
	for _, t := range tiles {
		a, b := t[0], t[1]
		count := float64(m.Batch) * math.Ceil(float64(m.M)/a) * math.Ceil(float64(m.N)/b)
		perDepth := 2 * a * b * (1 + p.Feed*(1/a+1/b)) / perSM
		ends := float64(p.Ends) * (0.5 + 0.5*a*b/(256*128))
		for _, s := range splits {
			depth := float64(m.K) / s
			if s > 1 && (depth < minDepth) {
				break
			}
			waves := count * s / float64(sms)
			waves = max(1, waves+p.Tail*(math.Ceil(waves)-waves))
			x := waves * (perDepth*depth + ends)
			if s > 1 {
				x += s * partial
			}
			best = min(best, x)
			if count*s > 4*float64(sms) {
				break // more parts only add ends and partial sums
			}
		}
	}
	return units.Seconds(best)
}
