package listsched

import (
	"errors"
	"math"
)

// errSimplex says that a linear program has no optimum that simplex finds.
var errSimplex = errors.New("the simplex method ends without an optimum")

// simplexTolerance is how far from zero a coefficient of a tableau counts.
const simplexTolerance = 1e-9

// tableau is a linear program in standard form: minimize c x where A x = b and x >= 0. Its rows are
// solved for the variables of the basis.
type tableau struct {
	rows  [][]float64 // [R,C+1] of A and b
	costs []float64   // [C+1] of c, reduced by those of the basis, and minus the value
	basis []int       // [R]
}

// simplex minimizes c x where A x = b and x >= 0, for b >= 0, by the simplex method in two phases with
// Bland's rule (R. G. Bland, "New finite pivoting rules for the simplex method", 1977), which ends. a is
// [R,C]; it is not changed.
func simplex(c []float64, a [][]float64, b []float64) (x []float64, value float64, err error) {
	n, m := len(c), len(a)
	t := tableau{rows: make([][]float64, m), costs: make([]float64, n+m+1), basis: make([]int, m)}
	for r := range a { // the first phase minimizes the sum of a variable more for each row
		row := make([]float64, n+m+1)
		copy(row, a[r])
		row[n+r], row[n+m] = 1, b[r]
		t.rows[r], t.basis[r] = row, n+r
		for k := range n {
			t.costs[k] -= row[k]
		}
		t.costs[n+m] -= b[r]
	}
	if !t.minimize(n+m) || -t.costs[n+m] > simplexTolerance*float64(m) {
		return nil, 0, errSimplex
	}
	for r, v := range t.basis { // those that are left are 0: others take their place, or the row says nothing
		if v < n {
			continue
		}
		for k := range n {
			if math.Abs(t.rows[r][k]) > simplexTolerance {
				t.pivot(r, k)
				break
			}
		}
	}
	clear(t.costs)
	copy(t.costs, c)
	for r, v := range t.basis {
		if v < n && c[v] != 0 {
			subtract(t.costs, t.rows[r], c[v])
		}
	}
	if !t.minimize(n) {
		return nil, 0, errSimplex
	}
	x = make([]float64, n)
	for r, v := range t.basis {
		if v < n {
			x[v] = t.rows[r][n+m]
		}
	}
	return x, -t.costs[n+m], nil
}

// minimize pivots on the first n variables until none lowers the cost, and reports whether it has a bound.
func (t *tableau) minimize(n int) bool {
	last := len(t.costs) - 1
	for {
		enter := 0
		for enter < n && t.costs[enter] >= -simplexTolerance {
			enter++
		}
		if enter == n {
			return true
		}
		leave, least := -1, math.Inf(1)
		for r, row := range t.rows {
			if row[enter] <= simplexTolerance {
				continue
			}
			ratio := row[last] / row[enter]
			if ratio < least-simplexTolerance || ratio <= least+simplexTolerance && leave >= 0 && t.basis[r] < t.basis[leave] {
				leave, least = r, min(ratio, least)
			}
		}
		if leave < 0 {
			return false
		}
		t.pivot(leave, enter)
	}
}

// pivot solves row r for variable k, and takes that out of the others.
func (t *tableau) pivot(r, k int) {
	row := t.rows[r]
	f := 1 / row[k]
	for i := range row {
		row[i] *= f
	}
	row[k] = 1
	for other, x := range t.rows {
		if other != r && x[k] != 0 {
			subtract(x, row, x[k])
		}
	}
	if t.costs[k] != 0 {
		subtract(t.costs, row, t.costs[k])
	}
	t.basis[r] = k
}

// subtract takes f times y from x.
func subtract(x, y []float64, f float64) {
	for i := range x {
		x[i] -= f * y[i]
	}
}
