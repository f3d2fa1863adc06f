package roofline

import (
	"math"
	"slices"
)

// minimize looks for a minimum of f by the downhill simplex method (J. A. Nelder
// and R. Mead, "A simplex method for function minimization", 1965, with their
// coefficients 1, 2, 1/2, 1/2), from start with edges of length step, in at most
// evals evaluations. It returns the best point and its value, and does not
// change start. The method needs no gradient, which waves of tiles do not have.
func minimize(f func([]float64) float64, start []float64, step float64, evals int) ([]float64, float64) {
	type vertex struct {
		x []float64
		y float64
	}
	n := len(start)
	at := func(x []float64) vertex {
		evals--
		y := f(x)
		if math.IsNaN(y) {
			y = math.Inf(1)
		}
		return vertex{x, y}
	}
	s := []vertex{at(slices.Clone(start))}
	for i := range n {
		x := slices.Clone(start)
		x[i] += step
		s = append(s, at(x))
	}
	byValue := func(a, b vertex) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	}
	// along returns the point c + k*(c-worst).
	along := func(c, worst []float64, k float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = c[i] + k*(c[i]-worst[i])
		}
		return x
	}
	for evals > 0 {
		slices.SortStableFunc(s, byValue)
		if s[n].y-s[0].y < 1e-9*(1+math.Abs(s[0].y)) {
			break
		}
		c := make([]float64, n) // centroid of all but the worst
		for _, v := range s[:n] {
			for i := range c {
				c[i] += v.x[i] / float64(n)
			}
		}
		worst := s[n]
		r := at(along(c, worst.x, 1))
		switch {
		case r.y < s[0].y:
			if e := at(along(c, worst.x, 2)); e.y < r.y {
				r = e
			}
			s[n] = r
		case r.y < s[n-1].y:
			s[n] = r
		default:
			k := -0.5
			if r.y < worst.y {
				k = 0.5
			}
			if in := at(along(c, worst.x, k)); in.y < min(r.y, worst.y) {
				s[n] = in
				continue
			}
			for i := 1; i <= n; i++ { // nothing helps: shrink towards the best
				x := slices.Clone(s[0].x)
				for j := range x {
					x[j] += 0.5 * (s[i].x[j] - x[j])
				}
				s[i] = at(x)
			}
		}
	}
	slices.SortStableFunc(s, byValue)
	return s[0].x, s[0].y
}
