package vec

import "math"

// AdamConstants are the numbers of one Adam step; see Adam.
type AdamConstants struct {
	Scale        float32 // of the gradient
	Beta1, Beta2 float32
	Rate         float32 // learning rate, bias corrections included
	Epsilon      float32
}

// Adam moves weights w along the gradient g: with g' = Scale g,
// m = Beta1 m + (1-Beta1) g', v = Beta2 v + (1-Beta2) g'²,
// w = w - Rate m / (sqrt(v) + Epsilon).
func Adam(w, m, v, g []float32, c AdamConstants) {
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	n := whole(len(w))
	if n > 0 {
		adamAVX2(&w[0], &m[0], &v[0], &g[0], n, &[7]float32{c.Scale, c.Beta1, 1 - c.Beta1, c.Beta2, 1 - c.Beta2, c.Rate, c.Epsilon})
	}
	adamScalar(w[n:], m[n:], v[n:], g[n:], c)
}

func adamScalar(w, m, v, g []float32, c AdamConstants) {
	for i := range w {
		x := g[i] * c.Scale
		m[i] = c.Beta1*m[i] + (1-c.Beta1)*x
		v[i] = c.Beta2*v[i] + (1-c.Beta2)*x*x
		w[i] -= c.Rate * m[i] / (float32(math.Sqrt(float64(v[i]))) + c.Epsilon)
	}
}
