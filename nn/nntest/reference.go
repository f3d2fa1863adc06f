package nntest

import "math"

// MatMul returns a [n,k] times b [k,m].
func MatMul(a, b []float64, n, k, m int) []float64 {
	c := make([]float64, n*m)
	for i := range n {
		for l := range k {
			x := a[i*k+l]
			for j := range m {
				c[i*m+j] += x * b[l*m+j]
			}
		}
	}
	return c
}

// AddRow adds b [m] to every row of a and returns a.
func AddRow(a, b []float64) []float64 {
	for i := range a {
		a[i] += b[i%len(b)]
	}
	return a
}

// Map replaces every element v of a by f(v) and returns a.
func Map(a []float64, f func(float64) float64) []float64 {
	for i, v := range a {
		a[i] = f(v)
	}
	return a
}

// Sigmoid is 1 / (1 + exp(-v)).
func Sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// Relu is max(v, 0).
func Relu(v float64) float64 { return max(v, 0) }

// LayerNorm normalises rows of a, of len(gain) elements.
func LayerNorm(a, gain, bias []float64) []float64 {
	d := len(gain)
	y := make([]float64, len(a))
	for lo := 0; lo < len(a); lo += d {
		m, s := 0.0, 0.0
		for _, v := range a[lo : lo+d] {
			m += v / float64(d)
		}
		for _, v := range a[lo : lo+d] {
			s += (v - m) * (v - m) / float64(d)
		}
		for i, v := range a[lo : lo+d] {
			y[lo+i] = gain[i]*(v-m)/math.Sqrt(s+1e-5) + bias[i]
		}
	}
	return y
}

// Softmax returns the softmax of x.
func Softmax(x []float64) []float64 {
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, v)
	}
	p := make([]float64, len(x))
	for i, v := range x {
		p[i] = math.Exp(v - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
