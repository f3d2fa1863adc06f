package nn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"
)

func goBackend(t testing.TB, workers int) *Backend {
	t.Helper()
	b, err := NewBackend(Config{Libraries: []string{}, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEqualInputsStayApart: gorgonia merges nodes of one name and shape.
func TestEqualInputsStayApart(t *testing.T) {
	ps := NewParams()
	w, b := ps.Constant("w", 1, 1, 1), ps.Constant("b", 0, 1)
	g := NewGraph(goBackend(t, 1))
	x, y := g.Input("x", 1, 1), g.Input("x", 1, 1)
	l := g.Linear(Identity, []*Node{x}, []*Param{w}, b)
	m := g.Linear(Identity, []*Node{y}, []*Param{w}, b)
	if err := g.Compile(false, l, m); err != nil {
		t.Fatal(err)
	}
	g.SetInput(x, Mat{1, 1, []float32{3}})
	g.SetInput(y, Mat{1, 1, []float32{4}})
	for range 2 { // a machine that is not reset runs once only
		if _, err := g.Run(nil); err != nil {
			t.Fatal(err)
		}
		if a, b := g.Output(0).V[0], g.Output(1).V[0]; a != 3 || b != 4 {
			t.Fatalf("outputs %g and %g, want 3 and 4", a, b)
		}
		w.Value[0] = 1
	}
	w.Value[0] = 2 // graphs read the parameters' own memory
	if _, err := g.Run(nil); err != nil {
		t.Fatal(err)
	}
	if a := g.Output(0).V[0]; a != 6 {
		t.Errorf("output %g after doubling the weight, want 6", a)
	}
}

// refuses is a kernel that nobody may run.
type refuses struct{ Kernel }

func (refuses) Forward(*Context, []Mat, Mat) { panic("it ran") }

// TestWhatNoOutputReads does not run where there is no backward pass.
func TestWhatNoOutputReads(t *testing.T) {
	ps := NewParams()
	w, b := ps.Constant("w", 2, 1, 1), ps.Constant("b", 0, 1)
	g := NewGraph(goBackend(t, 1))
	x := g.Input("x", 1, 1)
	y := g.Linear(Identity, []*Node{x}, []*Param{w}, b)
	g.Apply("refuses", refuses{}, 1, 1, g.Linear(Identity, []*Node{y}, []*Param{w}, b))
	if err := g.Compile(false, y); err != nil {
		t.Fatal(err)
	}
	g.SetInput(x, Mat{1, 1, []float32{3}})
	if _, err := g.Run(nil); err != nil {
		t.Fatal(err)
	}
	if got := g.Output(0).V[0]; got != 6 {
		t.Errorf("output %g, want 6", got)
	}
}

// linearGraph returns a graph of three rows through one weight matrix, [2,1], and a bias.
func linearGraph(t *testing.T) (g *Graph, w, b *Param) {
	t.Helper()
	ps := NewParams()
	w, b = ps.Constant("w", 1, 2, 1), ps.Constant("b", 0, 1)
	g = NewGraph(goBackend(t, 1))
	x := g.Input("x", 3, 2)
	if err := g.Compile(true, g.Linear(Identity, []*Node{x}, []*Param{w}, b)); err != nil {
		t.Fatal(err)
	}
	g.SetInput(x, Mat{3, 2, []float32{1, 2, 3, 4, 5, 6}})
	return g, w, b
}

// TestDroppedGraphsAreFreed: a search, or a comparison of many, makes a policy for
// each trial.
func TestDroppedGraphsAreFreed(t *testing.T) {
	made := func() weak.Pointer[Graph] {
		g, _, _ := linearGraph(t)
		if _, err := g.Run(sumOfOutputs{}); err != nil {
			t.Fatal(err)
		}
		return weak.Make(g)
	}
	g := made()
	for range 3 { // what a sync.Pool holds goes after two
		runtime.GC()
	}
	if g.Value() != nil {
		t.Error("a graph that nothing uses is kept")
	}
}

// TestGraphsAreBuiltAtOnce: goroutines may build, compile and run graphs of their own at
// once; the race detector holds them apart.
func TestGraphsAreBuiltAtOnce(t *testing.T) {
	b := goBackend(t, 1)
	var wait sync.WaitGroup
	failed := make([]error, 4)
	for k := range failed {
		wait.Go(func() {
			for n := 1; n <= 20; n++ {
				ps := NewParams()
				w, bias := ps.Constant("w", 1, 2, 1), ps.Constant("b", 0, 1)
				g := NewGraph(b)
				x := g.Input("x", n, 2)
				h := g.Linear(Identity, []*Node{x}, []*Param{w}, bias)
				if failed[k] = g.Compile(true, h); failed[k] != nil {
					return
				}
				g.SetInput(x, Mat{n, 2, slices.Repeat([]float32{1}, 2*n)})
				loss, err := g.Run(sumOfOutputs{})
				if err == nil && (loss != float64(2*n) || bias.Grad[0] != float32(n)) {
					err = fmt.Errorf("%d rows: loss %g, gradient %g", n, loss, bias.Grad[0])
				}
				if failed[k] = err; err != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Error(err)
	}
}

type sumOfOutputs struct{}

func (sumOfOutputs) Loss(_ *Context, outputs, gradients []Mat) (s float64) {
	for i, v := range outputs[0].V {
		s += float64(v)
		gradients[0].V[i]++
	}
	return s
}

// TestGradientsAddUp: two runs add twice the gradient, a forward run none.
func TestGradientsAddUp(t *testing.T) {
	g, w, b := linearGraph(t)
	for i := range 3 {
		var o Objective
		if i != 1 {
			o = sumOfOutputs{}
		}
		loss, err := g.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		if i != 1 && loss != 21 {
			t.Errorf("loss %g, want 21", loss)
		}
	}
	if !slices.Equal(w.Grad, []float32{18, 24}) || b.Grad[0] != 6 {
		t.Errorf("gradients %v and %v, want [18 24] and [6]", w.Grad, b.Grad)
	}
}

// TestWorkersGiveTheSameBits on every operation with a reduction over rows.
func TestWorkersGiveTheSameBits(t *testing.T) {
	const n, d = 3000, 20
	run := func(workers int) []float32 {
		r := rand.New(rand.NewPCG(1, 2))
		ps := NewParams()
		w, b := ps.Glorot("w", r, d, d), ps.Constant("b", 0.1, d)
		gain, bias := ps.Constant("gain", 1, d), ps.Constant("bias", 0, d)
		table := ps.Normal("table", r, 1, 3, d)
		index, bounds := make([]int32, n), []int32{0, 1000, n}
		for i := range index {
			index[i] = int32(r.IntN(4)) - 1
		}
		g := NewGraph(goBackend(t, workers))
		x := g.Input("x", n, d)
		h := g.Linear(Relu, []*Node{x}, []*Param{w}, b)
		h = g.LayerNorm(gain, bias, g.AddEmbedding(h, table, n, &index), h)
		if err := g.Compile(true, g.MeanRows(h, 2, &bounds, false)); err != nil {
			t.Fatal(err)
		}
		m := NewMat(n, d)
		for i := range m.V {
			m.V[i] = float32(r.NormFloat64())
		}
		g.SetInput(x, m)
		if _, err := g.Run(sumOfOutputs{}); err != nil {
			t.Fatal(err)
		}
		all := slices.Clone(g.Output(0).V)
		for _, p := range ps.All() {
			all = append(all, p.Grad...)
		}
		return all
	}
	one := run(1)
	for _, workers := range []int{2, 5, 16} {
		if !slices.Equal(run(workers), one) {
			t.Errorf("%d workers give other bits than one", workers)
		}
	}
}

func TestMisusePanics(t *testing.T) {
	ps := NewParams()
	w, b := ps.Constant("w", 1, 2, 3), ps.Constant("b", 0, 3)
	cases := []struct {
		name string
		f    func(g *Graph)
		want string
	}{
		{"linear", func(g *Graph) { g.Linear(Identity, []*Node{g.Input("x", 4, 5)}, []*Param{w}, b) }, "input [4 5], weight [2 3]"},
		{"norm", func(g *Graph) { g.LayerNorm(b, b, g.Param(w), g.Input("x", 4, 3)) }, "[4 3]"},
		{"mul", func(g *Graph) { g.Mul(g.Param(w), g.Input("x", 3, 3)) }, "[2 3] and [3 3]"},
		{"set input", func(g *Graph) { g.SetInput(g.Input("x", 4, 5), NewMat(5, 4)) }, "[5,4] of 20 elements, want [4,5]"},
		{"name taken", func(*Graph) { ps.Constant("w", 0, 1) }, `"w" exists`},
		{"no parameter", func(g *Graph) { g.Mul(g.Input("x", 1, 1), g.Input("y", 1, 1)) }, "no differentiable input"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, c.want) {
					t.Errorf("panic %q, want one with %q", p, c.want)
				}
			}()
			c.f(NewGraph(goBackend(t, 1)))
		})
	}
}

func TestBackendFallsBack(t *testing.T) {
	b, err := NewBackend(Config{Libraries: []string{"libnone.so"}, Workers: 1})
	if err != nil || b.Missing() == nil || !strings.Contains(b.Missing().Error(), "libnone.so") {
		t.Errorf("backend %v, error %v, missing %v: want the product in Go and the library named", b, err, b.Missing())
	}
	if goBackend(t, 1).Missing() != nil {
		t.Error("a library is missing although none was asked for")
	}
	if _, err := NewBackend(Config{}); err == nil {
		t.Error("a backend without workers was made")
	}
}
