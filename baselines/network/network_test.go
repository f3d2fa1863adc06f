package network_test

import (
	"fmt"
	"math"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/network"
	"placer/graph"
	"placer/graph/unit"
)

// TestExchanges compares with sums over a dense matrix.
func TestExchanges(t *testing.T) {
	for _, c := range conformance.Cases() {
		p, err := c.Problem()
		if err != nil {
			t.Fatal(err)
		}
		if p.Machine.NumDevices() < 2 {
			continue
		}
		ops := p.Units.Levels[unit.Cell]
		n := ops.NumUnits()
		want := make([]float64, n*n)
		add := func(a, b int32, seconds float64) {
			if a != b {
				want[int(a)*n+int(b)] += seconds
				want[int(b)*n+int(a)] += seconds
			}
		}
		latency, bandwidth := p.Machine.Transfer(0, 1)
		for k := range p.Graph.NumTensors() {
			x := p.Graph.Tensor(graph.TensorID(k))
			sent := map[int32]bool{}
			for _, v := range p.Graph.Consumers(graph.TensorID(k)) {
				if u := ops.Of[v]; !sent[u] {
					sent[u] = true
					add(ops.Of[x.Producer], u, float64(latency+x.Bytes.Over(bandwidth)))
				}
			}
		}
		for i := range p.Graph.NumOps() {
			for _, q := range p.Graph.Control(graph.OpID(i)) {
				add(ops.Of[q], ops.Of[i], float64(latency))
			}
		}
		got := make([]float64, n*n)
		for _, e := range network.Exchanges(p, ops, []uint8{0, 1}) {
			got[int(e.A)*n+int(e.B)] += e.Seconds
		}
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-12 {
				t.Fatalf("%s: edge %d-%d weighs %g, want %g", c.Name, k/n, k%n, got[k], want[k])
			}
		}
	}
}

func Example() {
	c := conformance.Cases()[0] // one op on two devices, the second of half the speed
	p, err := c.Problem()
	if err != nil {
		panic(err)
	}
	c.Costs.Uniform = false
	fmt.Println(len(network.Exchanges(p, p.Units.Levels[unit.Op], []uint8{0, 1})), "edges")
	fmt.Printf("%.2f\n", network.Speeds(p, []uint8{0, 1}))
	// Output:
	// 0 edges
	// [0.60 0.40]
}
