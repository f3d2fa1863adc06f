package exchange_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"placer/baselines/regal/exchange"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/graph/costgraph"
)

// A synthetic graph written as the paper's data was and read back is the same
// problem, times in microseconds and all.
func TestCostGraphRoundTrip(t *testing.T) {
	for k := range uint64(20) {
		p := synth.Default().Generate(rand.New(rand.NewPCG(2, k)))
		for name, write := range map[string]func(*bytes.Buffer) error{
			"text":   func(b *bytes.Buffer) error { return costgraph.WriteText(b, exchange.CostGraph(p)) },
			"binary": func(b *bytes.Buffer) error { return costgraph.WriteBinary(b, exchange.CostGraph(p)) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			q, err := exchange.Read(b.Bytes(), p.Name(), p.Machine())
			if err != nil {
				t.Fatal(err)
			}
			want, got := p.Spec(), q.Spec()
			want.Internal = make([]int64, p.N())
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s of graph %d reads back otherwise", name, k)
			}
		}
	}
}

func Example() {
	p, err := exchange.Read([]byte(`node { name: "_SOURCE" }
		node { name: "a" id: 1 output_info { size: 64 } control_input: 0 compute_cost: 12 }
		node { name: "b" id: 2 input_info { preceding_node: 1 } compute_cost: 30 }`), "tiny", sched.TwoDevices())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.N(), p.T(), p.Time(), p.LowerBound())
	// Output: 3 2 [0 12 30] 42
}
