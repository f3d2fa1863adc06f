package throughput

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// entangled returns n ops each of which reads three of the twelve before it, on
// eight devices: about as many open nets as an order may leave, so the tables of
// PackingBound are as large as they get.
func entangled(t *testing.T, n int) *Instance {
	t.Helper()
	m, err := hw.Take("p100", 8, false)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 9))
	b := graph.NewBuilder("entangled")
	seconds := make([]float64, n)
	for i := range n {
		var in []graph.TensorID
		for range min(3, i) {
			in = append(in, b.Output(graph.OpID(max(0, i-1-rng.IntN(12))), 0))
		}
		b.Op(graph.Op{Name: fmt.Sprint("op", i), Kind: "MatMul", Forward: graph.None}, in, graph.Tensor{Bytes: units.Bytes(1e6 * (1 + rng.Float64()))})
		seconds[i] = 1e-4 * (1 + rng.Float64())
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := Source{Graph: g, Machine: m}
	for range m.NumDevices() {
		s.Seconds = append(s.Seconds, seconds)
	}
	x, err := New(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestPackingKeepsItsEffort: a table that effort does not pay for is given up, and
// what it took is counted. Before, one table could take four million entries, eight
// times a bound, whatever the effort: 17 s instead of one.
func TestPackingKeepsItsEffort(t *testing.T) {
	x := entangled(t, 300)
	low := x.Bound(t.Context(), math.Inf(1), math.MaxInt)
	const effort, limit = 10_000, 20_000
	if proven, spent := x.overpacked(t.Context(), 1.5*low, effort, limit); proven || spent < limit || spent > 3*limit {
		t.Errorf("spent %d entries, proven %v; want to give up the first table at about %d", spent, proven, limit)
	}
	if bound := x.PackingBound(t.Context(), low, 4*low, effort); bound < low {
		t.Errorf("bound %g, below %g, from which it started", bound, low)
	}
}
