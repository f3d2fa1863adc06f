package exact

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"placer/baselines/conformance"
	"placer/sim"
)

// TestOtherRules: under an evaluator that shares links fairly the search's own
// event loop is wrong somewhere, and nothing is called optimal that is not.
func TestOtherRules(t *testing.T) {
	differs := 0
	for seed := range uint64(40) {
		p := random(t, rand.New(rand.NewPCG(seed, 8)), 5, 2, sim.Config{Contention: sim.FairShare})
		out, proof, err := Exact{}.Solve(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.Notes[0], "other rules") {
			differs++
			if proof.Optimal {
				t.Errorf("seed %d: optimal under %q", seed, out.Notes[0])
			}
		}
	}
	if differs == 0 {
		t.Error("no case in which the rules differ")
	}
}

// TestStopped: a search that is cut short says so, with a bound that holds.
func TestStopped(t *testing.T) {
	for seed := range uint64(10) {
		p := random(t, rand.New(rand.NewPCG(seed, 9)), 12, 3, sim.Config{})
		whole, proof, err := Exact{}.Solve(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if !proof.Optimal {
			t.Fatalf("seed %d: %v", seed, whole.Notes)
		}
		for _, nodes := range []int{1, 10, 100} {
			out, part, err := Exact{Nodes: nodes}.Solve(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			if part.Bound > whole.Score.Value || part.Bound <= 0 {
				t.Errorf("seed %d, %d nodes: bound %g, optimum %g", seed, nodes, part.Bound, whole.Score.Value)
			}
			if part.Optimal && out.Score.Value > whole.Score.Value*(1+1e-8) {
				t.Errorf("seed %d, %d nodes: %g called optimal, optimum %g", seed, nodes, out.Score.Value, whole.Score.Value)
			}
			if !part.Optimal && !strings.HasPrefix(out.Notes[0], "best found") {
				t.Errorf("seed %d, %d nodes: note %q", seed, nodes, out.Notes[0])
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	p := random(t, rand.New(rand.NewPCG(1, 10)), maxOps+1, 2, sim.Default())
	out, proof, err := Exact{}.Solve(context.Background(), p)
	if err != nil || proof.Optimal || !strings.Contains(out.Notes[0], "too many") || !(proof.Bound > 0 && proof.Bound <= out.Score.Value) {
		t.Errorf("%v, %+v, %v", out, proof, err)
	}
}

func Example() {
	c := conformance.Tiny()[0]
	p, err := c.Problem()
	if err != nil {
		panic(err)
	}
	out, err := Exact{}.Place(context.Background(), p)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f us on devices %v\n%s\n", 1e6*out.Score.Value, out.Device, out.Notes[0])
	// Output:
	// 172.9 us on devices [0 1 0 0 1 0]
	// OPTIMAL over all placements and priorities: proven with 14 nodes
}

func BenchmarkExact(b *testing.B) {
	for _, n := range []int{8, 12, 16} {
		for _, d := range []int{2, 4} {
			b.Run(fmt.Sprintf("ops=%d/devices=%d", n, d), func(b *testing.B) {
				proven, nodes := 0, 0
				for k := range b.N {
					p := random(b, rand.New(rand.NewPCG(uint64(k%20), 11)), n, d, sim.Config{})
					_, proof, err := Exact{Nodes: 1_000_000}.Solve(context.Background(), p)
					if err != nil {
						b.Fatal(err)
					}
					if proof.Optimal {
						proven++
					}
					nodes += proof.Nodes
				}
				b.ReportMetric(float64(proven)/float64(b.N), "proven")
				b.ReportMetric(float64(nodes)/float64(b.N), "nodes/op")
			})
		}
	}
}
