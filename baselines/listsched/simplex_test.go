package listsched

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// TestSimplex: the least value is that of gonum's simplex method, and x keeps to A x = b and x >= 0.
func TestSimplex(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	solved := 0
	for range 300 {
		m := 1 + r.IntN(8)
		n := m + 1 + r.IntN(12)
		a, b, c, at := make([][]float64, m), make([]float64, m), make([]float64, n), make([]float64, n)
		for k := range n {
			c[k], at[k] = r.Float64(), float64(r.IntN(3)) // costs above 0, so that there is a bound
		}
		dense := mat.NewDense(m, n, nil)
		for i := range a {
			a[i] = make([]float64, n)
			for k := range n {
				a[i][k] = float64(r.IntN(7) - 3)
				b[i] += a[i][k] * at[k]
			}
			if b[i] < 0 {
				b[i] = -b[i]
				for k := range n {
					a[i][k] = -a[i][k]
				}
			}
			dense.SetRow(i, a[i])
		}
		x, value, err := simplex(c, a, b)
		if err != nil {
			t.Fatalf("%v: %v %v %v", err, c, a, b)
		}
		sum := 0.0
		for k := range n {
			sum += c[k] * x[k]
			if x[k] < -1e-7 {
				t.Errorf("x[%d] is %g", k, x[k])
			}
		}
		for i := range a {
			left := 0.0
			for k := range n {
				left += a[i][k] * x[k]
			}
			if math.Abs(left-b[i]) > 1e-6 {
				t.Errorf("row %d comes to %g, want %g", i, left, b[i])
			}
		}
		want, _, err := lp.Simplex(c, dense, b, 1e-10, nil)
		if err != nil { // it wants independent rows
			continue
		}
		solved++
		if math.Abs(value-want) > 1e-6*(1+want) || math.Abs(sum-value) > 1e-6*(1+want) {
			t.Errorf("least %g (%g by x), want %g", value, sum, want)
		}
	}
	if solved < 200 {
		t.Errorf("gonum solved %d of 300", solved)
	}
	if _, _, err := simplex([]float64{1, 1}, [][]float64{{1, 1}, {1, 1}}, []float64{1, 2}); err == nil {
		t.Error("a program without solution has one")
	}
	if _, _, err := simplex([]float64{-1, 0}, [][]float64{{1, -1}}, []float64{1}); err == nil {
		t.Error("a program without bound has an optimum")
	}
}
