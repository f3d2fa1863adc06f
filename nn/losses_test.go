package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLossGradients compares losses with central differences.
func TestLossGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, v := NewMat(6, 4), NewMat(3, 1)
	for i := range x.V {
		x.V[i] = float32(r.NormFloat64())
	}
	for i := range v.V {
		v.V[i] = float32(r.NormFloat64())
	}
	x.Row(1)[2] = Masked
	cases := []struct {
		name string
		o    Objective
	}{
		{"cross entropy", &CrossEntropy{Labels: []int32{0, 1, 3, -1, 2, 2}}},
		{"cross entropy of copies", &CrossEntropy{Labels: []int32{0, -1, 3}, Weight: 0.3}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dx, dv := NewMat(6, 4), NewMat(3, 1)
			c.o.Loss(nil, []Mat{x, v}, []Mat{dx, dv})
			loss := func() float64 { return c.o.Loss(nil, []Mat{x, v}, []Mat{NewMat(6, 4), NewMat(3, 1)}) }
			for _, m := range []struct{ x, d Mat }{{x, dx}, {v, dv}} {
				for i, old := range m.x.V {
					if old == Masked {
						if m.d.V[i] != 0 {
							t.Errorf("gradient of the forbidden choice is %g, want 0", m.d.V[i])
						}
						continue
					}
					m.x.V[i] = old + 1e-2
					high, up := loss(), float64(m.x.V[i])
					m.x.V[i] = old - 1e-2
					low, down := loss(), float64(m.x.V[i])
					m.x.V[i] = old
					if want := (high - low) / (up - down); math.Abs(float64(m.d.V[i])-want) > 1e-4 {
						t.Errorf("gradient %d is %g, want %g", i, m.d.V[i], want)
					}
				}
			}
		})
	}
}

func TestCrossEntropyCounts(t *testing.T) {
	x := Mat{3, 2, []float32{2, 1, 0, 1, 5, 0}}
	o := &CrossEntropy{Labels: []int32{0, 0, -1}}
	o.Loss(nil, []Mat{x}, []Mat{NewMat(3, 2)})
	if o.Right != 1 || o.Counted != 2 {
		t.Errorf("%d of %d right, want 1 of 2", o.Right, o.Counted)
	}
	none := &CrossEntropy{Labels: []int32{-1, -1, -1}}
	d := NewMat(3, 2)
	if l := none.Loss(nil, []Mat{x}, []Mat{d}); l != 0 || d.V[0] != 0 {
		t.Errorf("loss %g and gradient %g without labels, want 0", l, d.V[0])
	}
}

func TestCheckMask(t *testing.T) {
	cases := []struct {
		name string
		mask []bool
		ok   bool
	}{
		{"none", nil, true},
		{"one row", []bool{true, false}, true},
		{"each", []bool{true, false, false, true, true, true}, true},
		{"wrong length", []bool{true, false, false}, false},
		{"nothing left", []bool{false, false}, false},
		{"nothing left in a row", []bool{true, false, false, false, true, true}, false},
	}
	for _, c := range cases {
		if err := CheckMask(c.mask, 3, 2); (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok %v", c.name, err, c.ok)
		}
	}
}
