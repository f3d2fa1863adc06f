package vec

import "math"

// Constants of the exponential: x = n ln2 + r, exp(x) = 2^n P(r), |r| <= ln2/2,
// with the classic minimax polynomial of the Cephes library (single precision,
// relative error below 2e-7).
const (
	log2e = 1.44269504088896341
	ln2hi = 0.693359375
	ln2lo = -2.12194440e-4
	// roundMagic added to a number of magnitude below 2^22 rounds it to the
	// nearest integer, which then sits in the low bits.
	roundMagic = 12582912.0
	// expLow is where results would become subnormal; below it exp is 0.
	expLow  = -87.0
	expHigh = 88.0
	expC5   = 1.9875691500e-4
	expC4   = 1.3981999507e-3
	expC3   = 8.3334519073e-3
	expC2   = 4.1665795894e-2
	expC1   = 1.6666665459e-1
	expC0   = 5.0000001201e-1
)

// Exp returns e^x: 0 below -87, e^88 above 88.
func Exp(x float32) float32 {
	if x < expLow {
		return 0
	}
	if x > expHigh {
		x = expHigh
	}
	t := x*log2e + roundMagic
	n := t - roundMagic
	r := x - n*ln2hi - n*ln2lo
	p := ((((expC5*r+expC4)*r+expC3)*r+expC2)*r+expC1)*r + expC0
	p = p*r*r + r + 1
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(t)<<23)
}

func addScalar(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func mulScalar(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func mulAddScalar(dst, a, b []float32) {
	for i := range dst {
		dst[i] += a[i] * b[i]
	}
}

func axpyScalar(dst, x []float32, a float32) {
	for i := range dst {
		dst[i] += a * x[i]
	}
}

func scaleScalar(dst []float32, a float32) {
	for i := range dst {
		dst[i] *= a
	}
}

func dotScalar(a, b []float32) (s float32) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func sumScalar(x []float32) (s float32) {
	for _, v := range x {
		s += v
	}
	return s
}

func sumSquaresScalar(x []float32, mean float32) (s float32) {
	for _, v := range x {
		d := v - mean
		s += d * d
	}
	return s
}

func maxScalar(x []float32, m float32) float32 {
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func normalizeScalar(dst, x []float32, mean, scale float32) {
	for i := range dst {
		dst[i] = (x[i] - mean) * scale
	}
}

func expShiftSumScalar(dst, x []float32, scale, shift float32) (s float32) {
	for i := range dst {
		e := Exp(x[i]*scale - shift)
		dst[i] = e
		s += e
	}
	return s
}

func sigmoidBiasScalar(dst, bias []float32) {
	for i := range dst {
		dst[i] = 1 / (1 + Exp(-(dst[i] + bias[i])))
	}
}

func sigmoidBackScalar(dst, y, g []float32) {
	for i := range dst {
		dst[i] = g[i] * y[i] * (1 - y[i])
	}
}

func reluBiasScalar(dst, bias []float32) {
	for i := range dst {
		dst[i] = max(dst[i]+bias[i], 0)
	}
}

func reluBackScalar(dst, y, g []float32) {
	for i := range dst {
		if y[i] > 0 {
			dst[i] = g[i]
		} else {
			dst[i] = 0
		}
	}
}

func softmaxBackScalar(dst, p, dp []float32, c, scale float32) {
	for i := range dst {
		dst[i] = p[i] * (dp[i] - c) * scale
	}
}

func maxArgScalar(m []float32, arg []int32, x []float32, id int32) {
	for i, v := range x {
		if v > m[i] {
			m[i], arg[i] = v, id
		}
	}
}
