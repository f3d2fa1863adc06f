package conformance

import (
	"math"
	"testing"
)

// TestOptima holds the recorded optima of the tiny problems against exhaustive
// search.
func TestOptima(t *testing.T) {
	matters := 0
	for _, c := range Tiny() {
		p, err := c.Problem()
		if err != nil {
			t.Fatal(err)
		}
		got, under := exhaustive(p), overAllOrders(p)
		if !under.Feasible() || math.Abs(under.Value/c.Optimum-1) > 1e-9 {
			t.Errorf("%s: optimum %.9f us, recorded %.9f us", c.Name, 1e6*under.Value, 1e6*c.Optimum)
		}
		if got.Value > under.Value*1.01 {
			matters++
		}
	}
	if matters < 3 {
		t.Errorf("priorities matter in %d problems, want three at least", matters)
	}
}
