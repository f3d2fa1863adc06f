package nntest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/nn"
	"placer/nn/blas"
)

// Backends returns the backends to test on this machine: gonum, the fastest
// product in Go, and a BLAS library, the latter with two workers. It logs why a
// library is missing.
func Backends(t testing.TB) []*nn.Backend {
	t.Helper()
	products := []blas.Gemm{blas.Gonum{}}
	if g := blas.InGo(); g.Name() != products[0].Name() {
		products = append(products, g)
	}
	if l, err := blas.Open(); err == nil {
		products = append(products, l)
	} else {
		t.Logf("tested without a BLAS library: %v", err)
	}
	var all []*nn.Backend
	for i, p := range products {
		b, err := nn.NewBackend(nn.Config{Product: p, Workers: 1 + i/2})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// Case is an operation with its definition.
type Case struct {
	Name   string
	Shapes [][]int // of the parameters, which stand for data inputs too
	// Scale is the deviation of the parameters' random values; 0 means 0.5.
	Scale float64
	// Build adds the operation to g.
	Build func(g *nn.Graph, p []*nn.Param) *nn.Node
	// Reference computes the operation's result from the parameters x. fixed are
	// the same values while x is moved to differentiate: what it uses of fixed
	// has no gradient.
	Reference func(x, fixed [][]float64) []float64
}

// The tolerances, relative to the largest number compared: float32 arithmetic
// over sums of up to some thousand terms.
const (
	forwardTolerance  = 2e-5
	backwardTolerance = 2e-4
	// step of the central differences, taken on the float64 reference.
	step = 1e-5
	// elements of each parameter whose derivative is checked.
	elements = 12
)

// Check compares c on b with its reference: the result, and the gradient of the
// result's scalar product with random numbers.
func Check(t *testing.T, b *nn.Backend, c Case) {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 13))
	ps := nn.NewParams()
	var params []*nn.Param
	var x [][]float64
	for i, s := range c.Shapes {
		p := ps.Constant(string(rune('a'+i)), 0, s...)
		v := make([]float64, len(p.Value))
		for j := range v {
			scale := c.Scale
			if scale == 0 {
				scale = 0.5
			}
			p.Value[j] = float32(r.NormFloat64() * scale)
			v[j] = float64(p.Value[j])
		}
		params, x = append(params, p), append(x, v)
	}
	g := nn.NewGraph(b)
	y := c.Build(g, params)
	if err := g.Compile(true, y); err != nil {
		t.Fatal(err)
	}
	want := c.Reference(x, x)
	weights := make([]float64, len(want))
	for i := range weights {
		weights[i] = r.NormFloat64()
	}
	if _, err := g.Run(weighted(weights)); err != nil {
		t.Fatal(err)
	}
	got := g.Output(0).V
	if len(got) != len(want) {
		t.Fatalf("%d results, want %d", len(got), len(want))
	}
	compare(t, "result", forwardTolerance, len(want), func(i int) (float64, float64) { return float64(got[i]), want[i] })
	for i, p := range params {
		at := r.Perm(len(p.Value))
		at = at[:min(elements, len(at))]
		compare(t, "gradient of parameter "+p.Name, backwardTolerance, len(at), func(j int) (float64, float64) {
			return float64(p.Grad[at[j]]), derivative(c, x, weights, i, at[j])
		})
	}
}

// derivative is the central difference of the weighted reference, taken for each
// result on its own, as a masked one is too large to add first.
func derivative(c Case, x [][]float64, weights []float64, i, j int) (s float64) {
	at := func(v float64) []float64 {
		moved := append([][]float64(nil), x...)
		moved[i] = append([]float64(nil), x[i]...)
		moved[i][j] = v
		return c.Reference(moved, x)
	}
	high, low := at(x[i][j]+step), at(x[i][j]-step)
	for k, w := range weights {
		s += w * (high[k] - low[k]) / (2 * step)
	}
	return s
}

func compare(t *testing.T, what string, tolerance float64, n int, pair func(i int) (got, want float64)) {
	t.Helper()
	got, want, top := make([]float64, n), make([]float64, n), 1e-3
	for i := range n {
		got[i], want[i] = pair(i)
		top = max(top, math.Abs(want[i]))
	}
	for i := range n {
		if !(math.Abs(got[i]-want[i]) <= tolerance*top) {
			t.Errorf("%s: element %d of %d compared is %.8g, want %.8g (largest %.3g)", what, i, n, got[i], want[i], top)
			return
		}
	}
}

// weighted is the scalar product of output 0 with fixed numbers.
type weighted []float64

func (w weighted) Loss(_ *nn.Context, outputs, gradients []nn.Mat) (s float64) {
	for i, v := range outputs[0].V {
		s += w[i] * float64(v)
		gradients[0].V[i] += float32(w[i])
	}
	return s
}

// Slope moves the parameters by h and -h along the gradient that loss leaves in them, and
// returns the loss's slope in between and the gradient's squared norm, to which the slope
// is equal but for curvature.
func Slope(ps *nn.Params, h float64, loss func() float64) (slope, norm float64) {
	loss()
	var direction [][]float32
	for _, p := range ps.All() {
		direction = append(direction, slices.Clone(p.Grad))
		for _, g := range p.Grad {
			norm += float64(g) * float64(g)
		}
	}
	move := func(s float64) {
		for i, p := range ps.All() {
			for j := range p.Value {
				p.Value[j] += float32(s * float64(direction[i][j]))
			}
		}
	}
	h /= math.Sqrt(norm)
	move(h)
	high := loss()
	move(-2 * h)
	return (high - loss()) / (2 * h), norm
}
