package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// random returns n values around 0 with spread s.
func random(r *rand.Rand, n int, s float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * s)
	}
	return x
}

func near(t *testing.T, name string, n int, got, want []float32) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); d > 1e-5*(1+math.Abs(float64(want[i]))) || math.IsNaN(d) {
			t.Fatalf("%s, length %d: element %d is %g, portable form gives %g", name, n, i, got[i], want[i])
		}
	}
}

// TestKernelsAgreeWithScalar compares every kernel with its portable form on
// every length up to 100 and on random longer ones.
func TestKernelsAgreeWithScalar(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has no AVX2: the portable forms are in use")
	}
	r := rand.New(rand.NewPCG(1, 2))
	lengths := []int{}
	for n := 1; n <= 100; n++ {
		lengths = append(lengths, n)
	}
	for range 20 {
		lengths = append(lengths, 100+r.IntN(2000))
	}
	for _, n := range lengths {
		a, b, c := random(r, n, 1), random(r, n, 1), random(r, n, 1)
		u, v := float32(r.NormFloat64()), float32(r.NormFloat64())
		ternary := map[string][2]func(d, x, y []float32){
			"add":         {Add, addScalar},
			"mul":         {Mul, mulScalar},
			"mulAdd":      {MulAdd, mulAddScalar},
			"sigmoidBack": {SigmoidBack, sigmoidBackScalar},
			"reluBack":    {ReluBack, reluBackScalar},
			"axpy":        {func(d, x, y []float32) { Axpy(d, x, u) }, func(d, x, y []float32) { axpyScalar(d, x, u) }},
			"scale":       {func(d, x, y []float32) { Scale(d, u) }, func(d, x, y []float32) { scaleScalar(d, u) }},
			"normalize":   {func(d, x, y []float32) { Normalize(d, x, u, v) }, func(d, x, y []float32) { normalizeScalar(d, x, u, v) }},
			"sigmoidBias": {func(d, x, y []float32) { SigmoidBias(d, x) }, func(d, x, y []float32) { sigmoidBiasScalar(d, x) }},
			"reluBias":    {func(d, x, y []float32) { ReluBias(d, x) }, func(d, x, y []float32) { reluBiasScalar(d, x) }},
			"softmaxBack": {func(d, x, y []float32) { SoftmaxBack(d, x, y, u, v) }, func(d, x, y []float32) { softmaxBackScalar(d, x, y, u, v) }},
			"exp":         {func(d, x, y []float32) { ExpShiftSum(d, x, u, v) }, func(d, x, y []float32) { expShiftSumScalar(d, x, u, v) }},
		}
		for name, f := range ternary {
			d1 := append([]float32(nil), c...)
			d2 := append([]float32(nil), c...)
			f[0](d1, a, b)
			f[1](d2, a, b)
			near(t, name, n, d1, d2)
		}
		tmp, root := make([]float32, n), float32(math.Sqrt(float64(n))) // the scale of n random terms' sum
		near(t, "reductions", n,
			[]float32{Dot(a, b) / root, Sum(a) / root, SumSquares(a, u) / float32(n), Max(a), ExpShiftSum(tmp, a, u, v) / float32(n)},
			[]float32{dotScalar(a, b) / root, sumScalar(a) / root, sumSquaresScalar(a, u) / float32(n), maxScalar(a, a[0]), expShiftSumScalar(tmp, a, u, v) / float32(n)})
		constants := AdamConstants{Scale: 0.7, Beta1: 0.9, Beta2: 0.99, Rate: 0.1, Epsilon: 1e-3}
		var state [2][3][]float32
		for i := range state {
			state[i] = [3][]float32{append([]float32(nil), a...), append([]float32(nil), b...), append([]float32(nil), c...)}
			mulScalar(state[i][2], c, c) // a second moment is not negative
		}
		Adam(state[0][0], state[0][1], state[0][2], c, constants)
		adamScalar(state[1][0], state[1][1], state[1][2], c, constants)
		for i := range state[0] {
			near(t, "adam", n, state[0][i], state[1][i])
		}
		m1, m2 := append([]float32(nil), a...), append([]float32(nil), a...)
		g1, g2 := make([]int32, n), make([]int32, n)
		MaxArg(m1, g1, b, 7)
		maxArgScalar(m2, g2, b, 7)
		near(t, "maxArg", n, m1, m2)
		for i := range g1 {
			if g1[i] != g2[i] {
				t.Fatalf("maxArg, length %d: index %d is %d, portable form gives %d", n, i, g1[i], g2[i])
			}
		}
	}
}

// TestExp compares Exp, and ExpShiftSum with it, with math.Exp over its range.
func TestExp(t *testing.T) {
	var x []float32
	for v := float32(-87); v <= 88; v += 0.0371 {
		x = append(x, v)
	}
	y := make([]float32, len(x))
	ExpShiftSum(y, x, 1, 0)
	for i, v := range x {
		want := math.Exp(float64(v))
		for _, got := range []float32{y[i], Exp(v)} {
			if e := math.Abs(float64(got)/want - 1); e > 3e-7 {
				t.Errorf("exp(%g) = %g, want %g, relative error %g", v, got, want, e)
			}
		}
	}
}

// TestExpUnderflow checks that a masked logit has probability exactly 0 and that
// an exponent too large does not overflow, in every lane and in the tail.
func TestExpUnderflow(t *testing.T) {
	x := []float32{-1e9, -87.5, -100, -1e30, -1e9, -1e9, -1e9, -1e9, -1e9, 1000, 88}
	y := make([]float32, len(x))
	ExpShiftSum(y, x, 1, 0)
	for i, v := range y {
		if x[i] < 0 && v != 0 {
			t.Errorf("exp(%g) = %g, want 0", x[i], v)
		}
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			t.Errorf("exp(%g) = %g", x[i], v)
		}
	}
	z := make([]float32, 16)
	for i := range z {
		z[i] = 200
	}
	ExpShiftSum(z, z, 1, 0)
	for i, v := range z {
		if math.IsInf(float64(v), 0) || v < 1e38 {
			t.Errorf("lane %d: exp(200) = %g, want it held at e^88", i, v)
		}
	}
}

func TestAliasing(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	Add(x, x, x)
	for i, v := range x {
		if v != float32(2*(i+1)) {
			t.Fatalf("x + x into x: element %d is %g", i, v)
		}
	}
}

func BenchmarkExpShiftSum(b *testing.B) {
	x := random(rand.New(rand.NewPCG(1, 2)), 512, 1)
	y := make([]float32, 512)
	b.SetBytes(512 * 4)
	for b.Loop() {
		ExpShiftSum(y, x, 0.2, 3)
	}
}
