package nn_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// TestAgainstPyTorch: a bidirectional LSTM and the attention of queries to its
// outputs have the values and gradients that PyTorch computes in float64.
// testdata/lstm.py made the fixture.
func TestAgainstPyTorch(t *testing.T) {
	data, err := os.ReadFile("testdata/lstm.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	get := func(name string, to any) {
		if err := json.Unmarshal(all[name], to); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var sequences, steps, input, cells int
	get("sequences", &sequences)
	get("steps", &steps)
	get("input", &input)
	get("cells", &cells)
	for _, b := range nntest.Backends(t) {
		t.Run(b.Name(), func(t *testing.T) {
			ps, rows := nn.NewParams(), sequences*steps
			param := func(name string, shape ...int) *nn.Param {
				p := ps.Constant(name, 0, shape...)
				get(name, &p.Value)
				return p
			}
			g := nn.NewGraph(b)
			x := g.Input("x", rows, input)
			m := nn.NewMat(rows, input)
			get("x", &m.V)
			g.SetInput(x, m)
			direction := func(name string, reverse bool) *nn.Node {
				z := g.Linear(nn.Identity, []*nn.Node{x}, []*nn.Param{param(name+"_wx", input, 4*cells)}, param(name+"_b", 4*cells))
				return g.LSTM(z, param(name+"_wh", cells, 4*cells), sequences, reverse)
			}
			ahead, back := direction("ahead", false), direction("back", true)
			memory := g.Concat(ahead, back)
			seen := g.Attend(g.Param(param("queries", rows, 2*cells)), memory, sequences, false)
			if err := g.Compile(true, seen); err != nil {
				t.Fatal(err)
			}
			o := &product{}
			get("weights", &o.weights)
			if _, err := g.Run(o); err != nil {
				t.Fatal(err)
			}
			near := func(name string, got []float32) {
				var want []float64
				get(name, &want)
				if len(got) != len(want) {
					t.Fatalf("%s: %d numbers, want %d", name, len(got), len(want))
				}
				for i, w := range want {
					if math.Abs(float64(got[i])-w) > 1e-5 {
						t.Errorf("%s: number %d is %g, want %g", name, i, got[i], w)
						return
					}
				}
			}
			near("seen", g.Output(0).V)
			for _, p := range ps.All() {
				near(p.Name+"_grad", p.Grad)
			}
		})
	}
}

// product is the scalar product of output 0 with weights.
type product struct{ weights []float32 }

func (p *product) Loss(_ *nn.Context, outputs, gradients []nn.Mat) (s float64) {
	for i, v := range outputs[0].V {
		s += float64(p.weights[i]) * float64(v)
		gradients[0].V[i] += p.weights[i]
	}
	return s
}
