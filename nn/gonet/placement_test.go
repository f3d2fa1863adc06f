package gonet

import (
	"math/rand/v2"
	"testing"

	"placer/nn"
)

// placementOnly are logits, a value and a loss of a network that decides nothing
// but placement, recorded before there were other tasks: seed 9, 60 nodes, after
// two steps of imitation.
var placementOnly = []float32{
	1.3761911, 0.16251153,
	0.19429028, 0.022004666, -0.01587885, -0.4486336,
	-0.2939771, -0.03949395, 0.11161216, -0.2613132,
	-0.19059943, -0.08082988, 0.029003486, -0.08460203,
	0.087509915, -0.049378626, 0.037383657, -0.32109746,
	-0.06329039, -0.064612865, 0.018243719, -0.17732017,
}

// TestPlacementAloneIsUnchanged: heads for further tasks change nothing of a
// network without them, neither its weights nor its arithmetic.
func TestPlacementAloneIsUnchanged(t *testing.T) {
	const n, f, a = 60, 6, 4
	net := newNetwork(t, small(f, a), 9, 1)
	b := &Batch{X: randomX(rand.New(rand.NewPCG(3, 4)), n, f), Neighbours: ladder(n)}
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(i * 7 % a)
	}
	var loss float64
	for range 2 {
		var err error
		if loss, err = net.Backward(b, &nn.CrossEntropy{Labels: labels}); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Update(1e-2); err != nil {
			t.Fatal(err)
		}
	}
	logits, values := forward(t, net, b)
	got := []float32{float32(loss), values[0]}
	for _, r := range []int{0, 17, 31, 32, 59} {
		got = append(got, logits.Row(r)...)
	}
	near(t, "loss, value and logits", got, placementOnly)
}
