package strategy

import (
	"strings"
	"testing"

	"placer/graph"
)

// TestForwardBehindBackward: a loss with a gradient in it (a gradient penalty) whose file says that the gradient
// is of the backward pass is refused; what is there once, and updates, read either.
func TestForwardBehindBackward(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase graph.Phase
		kind  graph.Kind
		fails bool
	}{
		{"forward", graph.Forward, "Square", true},
		{"backward", graph.Backward, "Square", false},
		{"update", graph.Update, "ApplyGradientDescent", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := graph.NewBuilder("penalty")
			rows := graph.Tensor{DType: graph.F32, Shape: []int64{8, 4}, Bytes: graph.Auto}
			x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, rows), 0)
			y := b.Op(graph.Op{Name: "y", Kind: "Tanh", Forward: graph.None}, []graph.TensorID{x}, rows)
			g := b.Op(graph.Op{Name: "g", Kind: "TanhGrad", Phase: graph.Backward, Forward: y}, []graph.TensorID{b.Output(y, 0)}, rows)
			b.Op(graph.Op{Name: "z", Kind: c.kind, Phase: c.phase, Forward: graph.None}, []graph.TensorID{b.Output(g, 0)}, rows)
			whole, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			_, err = NewModel(whole, whole, nil)
			if failed := err != nil && strings.Contains(err.Error(), "op z is of the forward pass and reads g of the backward pass"); failed != c.fails || err != nil && !failed {
				t.Errorf("%v", err)
			}
		})
	}
}
