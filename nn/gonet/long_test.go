//go:build long && unix

package gonet

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"placer/nn"
)

// TestMemoryAtOpGranularity: the largest graph of the papers, 83,712 ops (8-layer
// GNMT), forward and backward at the sizes of GDP, in under 10 GiB.
func TestMemoryAtOpGranularity(t *testing.T) {
	const n = 83712
	net := newNetwork(t, Default(64, 8), 1, 2)
	b := &Batch{X: randomX(rand.New(rand.NewPCG(1, 2)), n, 64), Neighbours: ladder(n)}
	for range 2 {
		forward(t, net, b)
		if _, err := net.Backward(b, &nn.CrossEntropy{Labels: make([]int32, n)}); err != nil {
			t.Fatal(err)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%.2f GiB from the system, %.2f GiB in use", float64(m.Sys)/(1<<30), float64(m.HeapInuse)/(1<<30))
	if m.Sys > 10<<30 {
		t.Errorf("%.2f GiB, want less than 10", float64(m.Sys)/(1<<30))
	}
}
