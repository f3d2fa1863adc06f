package nn

import (
	"errors"
	"math"

	"placer/internal/faults"
	"placer/nn/vec"
)

// AdamConfig holds Adam's constants (arXiv:1412.6980, algorithm 1).
type AdamConfig struct {
	Beta1, Beta2, Epsilon float64
	// ClipNorm bounds the Euclidean norm of the whole gradient; 0 is no bound.
	ClipNorm float64
}

// DefaultAdam returns the constants of the paper and a gradient norm of 1.
func DefaultAdam() AdamConfig {
	return AdamConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, ClipNorm: 1}
}

// Validate reports every fault of c.
func (c AdamConfig) Validate() error {
	var all faults.List
	all.If(!(c.Beta1 >= 0 && c.Beta1 < 1) || !(c.Beta2 >= 0 && c.Beta2 < 1), "nn: adam: betas are %g and %g, want [0,1)", c.Beta1, c.Beta2)
	all.If(!(c.Epsilon > 0), "nn: adam: epsilon is %g, want above 0", c.Epsilon)
	all.If(!(c.ClipNorm >= 0), "nn: adam: clip norm is %g, want at least 0", c.ClipNorm)
	return errors.Join(all...)
}

// Adam is the optimiser with its state, the moments of each parameter. A
// parameter first seen later starts with moments and step count zero.
type Adam struct {
	config AdamConfig
	state  map[*Param]*moments
	device Device
}

type moments struct {
	step int
	m, v []float32
}

// NewAdam returns an optimiser without state. It panics if c is not valid.
func NewAdam(c AdamConfig) *Adam {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return &Adam{config: c, state: map[*Param]*moments{}}
}

// On makes the optimiser step where b keeps the parameters, and returns it.
func (a *Adam) On(b *Backend) *Adam {
	a.device = b.device
	return a
}

// errNotFinite is returned by Step when the gradient holds an infinity or is not
// a number; the weights are unchanged then.
var errNotFinite = errors.New("nn: gradient is not finite")

// Step moves every parameter of ps by its gradient at the learning rate, clears
// the gradients, and returns the gradient's norm before clipping.
func (a *Adam) Step(ps *Params, learningRate float64) (float64, error) {
	sum, err := a.squares(ps)
	if err != nil {
		return 0, err
	}
	norm := math.Sqrt(sum)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		if a.device != nil {
			if err := a.device.Clear(ps.All()); err != nil {
				return norm, err
			}
		}
		ps.ZeroGrad()
		return norm, errNotFinite
	}
	scale := float32(1)
	if a.config.ClipNorm > 0 && norm > a.config.ClipNorm {
		scale = float32(a.config.ClipNorm / norm)
	}
	steps := make([]DeviceStep, len(ps.All()))
	for i, p := range ps.All() {
		steps[i] = a.next(p, scale, learningRate)
	}
	if a.device != nil {
		return norm, a.device.Step(steps)
	}
	for _, s := range steps {
		vec.Adam(s.Param.Value, s.M, s.V, s.Param.Grad, s.Constants)
	}
	ps.ZeroGrad()
	return norm, nil
}

// Forget drops the moments of parameters that are trained no more.
func (a *Adam) Forget(ps ...*Param) {
	for _, p := range ps {
		delete(a.state, p)
	}
}

// squares returns the square of the gradient's norm.
func (a *Adam) squares(ps *Params) (sum float64, err error) {
	if a.device != nil {
		return a.device.Squares(ps.All())
	}
	for _, p := range ps.All() {
		sum += squares(p.Grad)
	}
	return sum, nil
}

// next follows algorithm 1, with the bias corrections folded into the rate and
// into epsilon.
func (a *Adam) next(p *Param, scale float32, learningRate float64) DeviceStep {
	s := a.state[p]
	if s == nil {
		s = &moments{m: make([]float32, len(p.Value)), v: make([]float32, len(p.Value))}
		a.state[p] = s
	}
	s.step++
	if p.Rate != 0 {
		learningRate *= p.Rate
	}
	c1 := 1 - math.Pow(a.config.Beta1, float64(s.step))
	c2 := math.Sqrt(1 - math.Pow(a.config.Beta2, float64(s.step)))
	return DeviceStep{p, s.m, s.v, vec.AdamConstants{
		Scale: scale, Beta1: float32(a.config.Beta1), Beta2: float32(a.config.Beta2),
		Rate: float32(learningRate * c2 / c1), Epsilon: float32(a.config.Epsilon * c2),
	}}
}

// squares returns the sum of the squares of x. Only short stretches are added in
// float32.
func squares(x []float32) (s float64) {
	const stretch = 1024
	for lo := 0; lo < len(x); lo += stretch {
		part := x[lo:min(lo+stretch, len(x))]
		s += float64(vec.Dot(part, part))
	}
	return s
}
