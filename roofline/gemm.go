package roofline

import (
	"math"

	"placer/graph"
	"placer/units"
)

// tiles are the output tiles that a library's kernels come in. Each GEMM runs on
// the one that suits it best, as an autotuner or a heuristic picks it.
var tiles = [...][2]float64{{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {32, 64}, {32, 32}, {16, 64}, {64, 16}}

// splits are the numbers of parts into which kernels cut the depth of a product
// that has too few tiles.
var splits = [...]float64{1, 2, 4, 8, 16}

// product returns the time of m on sms multiprocessors with a peak of rate in
// all, without launch and fixed time: waves of tiles, each of which takes its
// share of the peak, lengthened by the operands a small tile reads more often and
// by starting and ending the tile.
func (p *GEMMParams) product(m graph.GEMM, rate units.FLOPsPerSecond, sms int) units.Seconds {
	best := math.Inf(1)
	perSM := float64(rate) * p.Peak / float64(sms)
	for _, t := range tiles {
		count := float64(m.Batch) * math.Ceil(float64(m.M)/t[0]) * math.Ceil(float64(m.N)/t[1])
		work := 2 * t[0] * t[1] / perSM * (1 + p.Feed*(1/t[0]+1/t[1])) // per unit of depth
		for _, s := range splits {
			depth := math.Ceil(float64(m.K)/s) + p.K0
			if s > 1 {
				depth += p.K0 // the parts must be added up
			}
			if x := math.Ceil(count*s/float64(sms)) * work * depth; x < best {
				best = x
			}
			if count*s >= 2*float64(sms) {
				break // more parts only add ends
			}
		}
	}
	return units.Seconds(best)
}
