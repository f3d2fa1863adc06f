package nn

import (
	"errors"
	"math"
	"testing"
)

// TestAdam compares three steps with algorithm 1 of arXiv:1412.6980 in float64.
func TestAdam(t *testing.T) {
	ps := NewParams()
	p := ps.Constant("w", 1, 2)
	c := DefaultAdam()
	c.ClipNorm = 0
	a := NewAdam(c)
	w, m, v := []float64{1, 1}, []float64{0, 0}, []float64{0, 0}
	gradients := [][]float32{{0.5, -2}, {0.1, 3}, {-1, 1e-3}}
	for i, g := range gradients {
		copy(p.Grad, g)
		if _, err := a.Step(ps, 0.1); err != nil {
			t.Fatal(err)
		}
		for j, x := range g {
			x := float64(x)
			m[j] = 0.9*m[j] + 0.1*x
			v[j] = 0.999*v[j] + 0.001*x*x
			mh, vh := m[j]/(1-math.Pow(0.9, float64(i+1))), v[j]/(1-math.Pow(0.999, float64(i+1)))
			w[j] -= 0.1 * mh / (math.Sqrt(vh) + 1e-8)
			if math.Abs(float64(p.Value[j])-w[j]) > 1e-5 {
				t.Errorf("step %d, weight %d: %g, want %g", i, j, p.Value[j], w[j])
			}
			if p.Grad[j] != 0 {
				t.Errorf("step %d left gradient %g", i, p.Grad[j])
			}
		}
	}
}

// TestClipNorm: a gradient of norm 5 moves the moments as one of norm 1 in its
// direction, over all parameters together.
func TestClipNorm(t *testing.T) {
	first := func(scale float32, clip float64) []float32 {
		ps := NewParams()
		p, q := ps.Constant("a", 0, 1), ps.Constant("b", 0, 1)
		a := NewAdam(AdamConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1, ClipNorm: clip})
		p.Grad[0], q.Grad[0] = 3*scale, 4*scale
		norm, err := a.Step(ps, 1)
		if err != nil || math.Abs(norm-5*float64(scale)) > 1e-6 {
			t.Errorf("norm %g, %v, want %g", norm, err, 5*scale)
		}
		return []float32{p.Value[0], q.Value[0]}
	}
	clipped, small := first(1, 1), first(0.2, 0)
	for i := range small {
		if math.Abs(float64(clipped[i]-small[i])) > 1e-6 {
			t.Errorf("weight %d: %g clipped, %g from the small gradient", i, clipped[i], small[i])
		}
	}
}

func TestStepRefusesWhatIsNotFinite(t *testing.T) {
	ps := NewParams()
	p := ps.Constant("w", 1, 2)
	a := NewAdam(DefaultAdam())
	p.Grad[0], p.Grad[1] = 1, float32(math.NaN())
	if _, err := a.Step(ps, 0.1); !errors.Is(err, errNotFinite) {
		t.Errorf("error %v, want ErrNotFinite", err)
	}
	if p.Value[0] != 1 || p.Grad[0] != 0 {
		t.Errorf("weight %g and gradient %g after a refused step, want 1 and 0", p.Value[0], p.Grad[0])
	}
}

func TestAdamConfigValidate(t *testing.T) {
	if err := DefaultAdam().Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []AdamConfig{{Beta1: 1, Epsilon: 1}, {Beta2: -1, Epsilon: 1}, {}, {Epsilon: 1, ClipNorm: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

// TestRate: a parameter's own rate multiplies the learning rate.
func TestRate(t *testing.T) {
	ps := NewParams()
	p, q := ps.Constant("a", 0, 1), ps.Constant("b", 0, 1)
	q.Rate = 3
	p.Grad[0], q.Grad[0] = 0.5, 0.5
	if _, err := NewAdam(DefaultAdam()).Step(ps, 0.1); err != nil {
		t.Fatal(err)
	}
	if r := q.Value[0] / p.Value[0]; p.Value[0] >= 0 || r < 2.999 || r > 3.001 {
		t.Errorf("weights %g and %g, want the second three times the first", p.Value[0], q.Value[0])
	}
}

// TestAdamForgets: the moments of a parameter that is gone are gone, those of the others
// stay.
func TestAdamForgets(t *testing.T) {
	ps := NewParams()
	stays, goes := ps.Constant("stays", 1, 2), ps.Constant("goes", 1, 2)
	a := NewAdam(DefaultAdam())
	if _, err := a.Step(ps, 0.1); err != nil {
		t.Fatal(err)
	}
	ps.Remove("goes")
	a.Forget(goes)
	if len(a.state) != 1 || a.state[stays] == nil {
		t.Errorf("moments of %d parameters, want those of one", len(a.state))
	}
}
