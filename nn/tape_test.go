//go:build !light

package nn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTapeComputesTheBitsOfGorgonia on random graphs: values read several times, inputs,
// shared parameters, results that no output depends on.
func TestTapeComputesTheBitsOfGorgonia(t *testing.T) {
	backend := goBackend(t, 1)
	both, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g, ps := randomGraph(t, backend)
		e, err := newExpression(g)
		tape, err2 := newTape(g)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("gorgonia says %v, the tape %v", err, err2)
		}
		if err != nil {
			refused++
			return
		}
		both++
		for _, o := range []Objective{halfSquares{}, nil, halfSquares{}} {
			if o != nil && !g.trains {
				continue
			}
			want, got := bits(t, e, g, ps, o), bits(t, tape, g, ps, o)
			if !slices.Equal(want, got) {
				t.Fatalf("%v by the tape, %v by gorgonia", got, want)
			}
		}
	})
	if both == 0 || refused == 0 {
		t.Errorf("%d graphs compared, %d refused: want some of both", both, refused)
	}
}

// randomGraph returns a graph of matrices of four rows with some outputs.
func randomGraph(t *rapid.T, b *Backend) (*Graph, *Params) {
	const rows, width = 4, 3
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "weights"), 1))
	ps := NewParams()
	ws := []*Param{ps.Glorot("w0", r, width, width), ps.Glorot("w1", r, width, width)}
	bias, gain := ps.Normal("bias", r, 1, 1, width), ps.Constant("gain", 1, width)
	bias.Shape = []int{width}
	g := NewGraph(b)
	x := g.Input("x", rows, width)
	for i := range x.input.Data.V {
		x.input.Data.V[i] = float32(r.NormFloat64())
	}
	nodes := []*Node{x, g.Linear(Identity, []*Node{x}, ws[:1], bias)}
	pick := func(what string) *Node { return rapid.SampledFrom(nodes).Draw(t, what) }
	made := func(what string) *Node { return rapid.SampledFrom(nodes[1:]).Draw(t, what) }
	for range rapid.IntRange(0, 12).Draw(t, "operations") {
		w := rapid.SampledFrom(ws).Draw(t, "weight")
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			nodes = append(nodes, g.Linear(Relu, []*Node{pick("in")}, []*Param{w}, bias))
		case 1:
			nodes = append(nodes, g.Linear(Sigmoid, []*Node{pick("in"), pick("in")}, []*Param{w, ws[0]}, bias))
		case 2:
			nodes = append(nodes, g.LayerNorm(gain, bias, pick("in"), pick("in")))
		case 3:
			nodes = append(nodes, g.Mul(made("a"), pick("b")))
		case 4:
			nodes = append(nodes, g.AddRepeated(made("x"), pick("a")))
		}
	}
	var outputs []*Node
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(1, len(nodes)-1), 1, 3, rapid.ID[int]).Draw(t, "outputs") {
		outputs = append(outputs, nodes[i])
	}
	g.outputs, g.trains = outputs, rapid.Bool().Draw(t, "trains")
	g.context.training = g.trains
	return g, ps
}

// halfSquares is half the sum of squares.
type halfSquares struct{}

func (halfSquares) Loss(_ *Context, outputs, gradients []Mat) (s float64) {
	for i, m := range outputs {
		for k, v := range m.V {
			s += float64(v) * float64(v) / 2
			gradients[i].V[k] += v
		}
	}
	return s
}

// bits returns outputs, loss and gradients of a run.
func bits(t *rapid.T, e Engine, g *Graph, ps *Params, o Objective) []float32 {
	ps.ZeroGrad()
	loss, err := e.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	all := []float32{float32(loss)}
	for i := range g.outputs {
		all = append(all, e.Output(i).V...)
	}
	for _, p := range ps.All() {
		all = append(all, p.Grad...)
	}
	return all
}
