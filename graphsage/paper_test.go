package graphsage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// encode runs an encoder on x and returns the embedding.
func encode(t *testing.T, c Config, ps *nn.Params, e *Encoder, x nn.Mat, lists *Neighbours) nn.Mat {
	t.Helper()
	g := nn.NewGraph(nntest.Backends(t)[0])
	in := g.Input("x", x.N, x.D)
	if err := g.Compile(false, e.Apply(g, in, &lists)); err != nil {
		t.Fatal(err)
	}
	g.SetInput(in, x)
	if _, err := g.Run(nil); err != nil {
		t.Fatal(err)
	}
	return g.Output(0).Clone()
}

func float64s(p *nn.Param) (x []float64) {
	for _, v := range p.Value {
		x = append(x, float64(v))
	}
	return x
}

// TestEmbeddingEquations: GO, section 4.1: hN = max over neighbours of
// sigmoid(W h + b), h' = f(concat(h, hN)), for every layer; and the same with the
// deviation norm(h + f).
func TestEmbeddingEquations(t *testing.T) {
	for _, residual := range []bool{false, true} {
		c := Config{Features: 5, Layers: 3, Width: 12, Residual: residual}
		r := rand.New(rand.NewPCG(1, 2))
		ps := nn.NewParams()
		e := New(c, ps, r)
		const n = 30
		x := nn.NewMat(n, c.Features)
		var h []float64
		for i := range x.V {
			x.V[i] = float32(r.NormFloat64())
			h = append(h, float64(x.V[i]))
		}
		for _, p := range ps.All() { // biases start at 0, which would hide them
			if len(p.Shape) == 1 {
				for i := range p.Value {
					p.Value[i] += float32(r.NormFloat64() * 0.3)
				}
			}
		}
		lists := randomLists(r, n, 4)
		get := func(name string) []float64 { return float64s(ps.Lookup(name)) }
		h = nntest.Map(nntest.AddRow(nntest.MatMul(h, get("sage.embed.w"), n, c.Features, c.Width), get("sage.embed.b")), nntest.Relu)
		for _, l := range []string{"sage.0.", "sage.1.", "sage.2."} {
			near := pooled(h, get(l+"pool.w"), get(l+"pool.b"), lists, n, c.Width)
			// concat(h, hN) W = h W1 + hN W2
			next := nntest.MatMul(h, get(l+"self.w"), n, c.Width, c.Width)
			for i, v := range nntest.MatMul(near, get(l+"near.w"), n, c.Width, c.Width) {
				next[i] += v
			}
			next = nntest.Map(nntest.AddRow(next, get(l+"merge.b")), nntest.Relu)
			if residual {
				for i := range next {
					next[i] += h[i]
				}
				next = nntest.LayerNorm(next, get(l+"norm.gain"), get(l+"norm.bias"))
			}
			h = next
		}
		got := encode(t, c, ps, e, x, lists)
		for i := range h {
			if d := float64(got.V[i]) - h[i]; d > 1e-4 || d < -1e-4 {
				t.Fatalf("residual %v: element %d is %g, want %g", residual, i, got.V[i], h[i])
			}
		}
	}
}

// TestInductive: one set of weights serves graphs of any size, and the embedding
// of a node depends on nothing outside its component.
func TestInductive(t *testing.T) {
	c := Default(6)
	ps := nn.NewParams()
	r := rand.New(rand.NewPCG(3, 4))
	e := New(c, ps, r)
	a, b := randomLists(r, 20, 5), randomLists(r, 33, 5)
	x := nn.NewMat(53, c.Features)
	for i := range x.V {
		x.V[i] = float32(r.NormFloat64())
	}
	both := &Neighbours{Start: slices.Clone(a.Start), Index: slices.Clone(a.Index)}
	for _, u := range b.Index {
		both.Index = append(both.Index, 20+u)
	}
	for _, end := range b.Start[1:] {
		both.Start = append(both.Start, a.Start[20]+end)
	}
	alone := encode(t, c, ps, e, x.Rows(20, 53), b)
	together := encode(t, c, ps, e, x, both).Rows(20, 53)
	for i := range alone.V {
		if d := alone.V[i] - together.V[i]; d > 1e-5 || d < -1e-5 {
			t.Fatalf("element %d is %g alone and %g beside another graph", i, alone.V[i], together.V[i])
		}
	}
}
