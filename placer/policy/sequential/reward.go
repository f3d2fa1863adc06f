package sequential

import (
	"math"

	"placer/nn/vec"
	"placer/plan"
)

// relative is the time of a placement over the expert's, at most 5. One that does not
// fit counts as 3 times the expert's, and longer the more it lacks.
func relative(r plan.Score, s *instance, expert float64) float64 {
	if !r.Feasible() {
		return min(5, 3*(1+float64(r.Overflow)/float64(s.memory[0])))
	}
	return min(5, r.Value/expert)
}

// rewards returns -sqrt(time) for times over the expert's, [K] (GO, section 4.1).
func rewards(times []float64) []float32 {
	r := make([]float32, len(times))
	for i, x := range times {
		r[i] = -float32(math.Sqrt(x))
	}
	return r
}

// advantages turns the rewards of rollouts, of which n in a row have the same prior,
// into advantages over the mean of these n, in deviations of all.
func advantages(r []float32, n int) {
	mean := vec.Sum(r) / float32(len(r))
	scale := 1 / (float32(math.Sqrt(float64(vec.SumSquares(r, mean))/float64(len(r)))) + 1e-3)
	for lo := 0; lo < len(r); lo += n {
		g := r[lo:min(lo+n, len(r))]
		mean := vec.Sum(g) / float32(len(g))
		for i := range g {
			g[i] = (g[i] - mean) * scale
		}
	}
}
