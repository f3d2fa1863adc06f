package vec

import "math"

// lanes is the width of the assembly kernels; they get a multiple of it, the
// rest is done by the portable forms.
const lanes = 8

// whole is the part of n that the assembly kernels take: 0 without them.
func whole(n int) int {
	if !hasAVX2 {
		return 0
	}
	return n &^ (lanes - 1)
}

// Add sets dst[i] = a[i] + b[i].
func Add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		addAVX2(&dst[0], &a[0], &b[0], n)
	}
	addScalar(dst[n:], a[n:], b[n:])
}

// Mul sets dst[i] = a[i] b[i].
func Mul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		mulAVX2(&dst[0], &a[0], &b[0], n)
	}
	mulScalar(dst[n:], a[n:], b[n:])
}

// MulAdd adds a[i] b[i] to dst[i].
func MulAdd(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		mulAddAVX2(&dst[0], &a[0], &b[0], n)
	}
	mulAddScalar(dst[n:], a[n:], b[n:])
}

// Axpy adds a x[i] to dst[i].
func Axpy(dst, x []float32, a float32) {
	x = x[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		axpyAVX2(&dst[0], &x[0], n, a)
	}
	axpyScalar(dst[n:], x[n:], a)
}

// Scale multiplies dst by a.
func Scale(dst []float32, a float32) {
	n := whole(len(dst))
	if n > 0 {
		scaleAVX2(&dst[0], n, a)
	}
	scaleScalar(dst[n:], a)
}

// Dot returns the sum of a[i] b[i].
func Dot(a, b []float32) float32 {
	b = b[:len(a)]
	n := whole(len(a))
	s := float32(0)
	if n > 0 {
		s = dotAVX2(&a[0], &b[0], n)
	}
	return s + dotScalar(a[n:], b[n:])
}

// Sum returns the sum of x.
func Sum(x []float32) float32 {
	n := whole(len(x))
	s := float32(0)
	if n > 0 {
		s = sumAVX2(&x[0], n)
	}
	return s + sumScalar(x[n:])
}

// SumSquares returns the sum of (x[i] - mean)².
func SumSquares(x []float32, mean float32) float32 {
	n := whole(len(x))
	s := float32(0)
	if n > 0 {
		s = sumSquaresAVX2(&x[0], n, mean)
	}
	return s + sumSquaresScalar(x[n:], mean)
}

// Max returns the largest element of x, which must not be empty.
func Max(x []float32) float32 {
	n := whole(len(x))
	m := x[0]
	if n > 0 {
		m = maxAVX2(&x[0], n)
	}
	return maxScalar(x[n:], m)
}

// Normalize sets dst[i] = (x[i] - mean) scale.
func Normalize(dst, x []float32, mean, scale float32) {
	x = x[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		normalizeAVX2(&dst[0], &x[0], n, mean, scale)
	}
	normalizeScalar(dst[n:], x[n:], mean, scale)
}

// ExpShiftSum sets dst[i] = exp(x[i] scale - shift) and returns the sum. An
// exponent below -87 gives exactly 0.
func ExpShiftSum(dst, x []float32, scale, shift float32) float32 {
	x = x[:len(dst)]
	s := float32(0)
	if n := len(dst) &^ (2*lanes - 1); hasAVX512 && n > 0 {
		s = expShiftSumAVX512(&dst[0], &x[0], n, scale, shift)
		dst, x = dst[n:], x[n:]
	}
	n := whole(len(dst))
	if n > 0 {
		s += expShiftSumAVX2(&dst[0], &x[0], n, scale, shift)
	}
	return s + expShiftSumScalar(dst[n:], x[n:], scale, shift)
}

// Sigmoid returns 1 / (1 + exp(-x)), rounded from double precision. SigmoidBias is for
// rows: its exponential is that of Exp.
func Sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// SigmoidBias sets dst[i] = 1 / (1 + exp(-(dst[i] + bias[i]))).
func SigmoidBias(dst, bias []float32) {
	bias = bias[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		sigmoidBiasAVX2(&dst[0], &bias[0], n)
	}
	sigmoidBiasScalar(dst[n:], bias[n:])
}

// SigmoidBack sets dst[i] = g[i] y[i] (1 - y[i]): the gradient before a sigmoid
// whose output was y.
func SigmoidBack(dst, y, g []float32) {
	y, g = y[:len(dst)], g[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		sigmoidBackAVX2(&dst[0], &y[0], &g[0], n)
	}
	sigmoidBackScalar(dst[n:], y[n:], g[n:])
}

// ReluBias sets dst[i] = max(dst[i] + bias[i], 0).
func ReluBias(dst, bias []float32) {
	bias = bias[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		reluBiasAVX2(&dst[0], &bias[0], n)
	}
	reluBiasScalar(dst[n:], bias[n:])
}

// ReluBack sets dst[i] = g[i] where y[i] > 0 and 0 elsewhere.
func ReluBack(dst, y, g []float32) {
	y, g = y[:len(dst)], g[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		reluBackAVX2(&dst[0], &y[0], &g[0], n)
	}
	reluBackScalar(dst[n:], y[n:], g[n:])
}

// SoftmaxBack sets dst[i] = p[i] (dp[i] - c) scale: a row of the gradient before
// a softmax with output p, where c is the row's sum of p dp.
func SoftmaxBack(dst, p, dp []float32, c, scale float32) {
	p, dp = p[:len(dst)], dp[:len(dst)]
	n := whole(len(dst))
	if n > 0 {
		softmaxBackAVX2(&dst[0], &p[0], &dp[0], n, c, scale)
	}
	softmaxBackScalar(dst[n:], p[n:], dp[n:], c, scale)
}

// MaxArg keeps a running maximum: where x[i] > m[i] it sets m[i] = x[i] and
// arg[i] = id.
func MaxArg(m []float32, arg []int32, x []float32, id int32) {
	m, arg = m[:len(x)], arg[:len(x)]
	n := whole(len(x))
	if n > 0 {
		maxArgAVX2(&m[0], &arg[0], &x[0], n, id)
	}
	maxArgScalar(m[n:], arg[n:], x[n:], id)
}
