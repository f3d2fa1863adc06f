package pretrained_test

import (
	"context"
	"fmt"
	"testing"

	"placer/placer/policy/proposer"
	"placer/placer/policy/sequential"
	"placer/placer/pretrained"
	"placer/plan"
)

// TestPolicyPlaces: the built-in policy says what it was trained on, and places a
// small graph so that it fits.
func TestPolicyPlaces(t *testing.T) {
	policy, err := pretrained.Policy()
	if err != nil {
		t.Fatal(err)
	}
	if len(policy.Card.Trained) == 0 || policy.Card.Samples == 0 || policy.Limit() <= 0 {
		t.Errorf("card %+v, limit %g", policy.Card, policy.Limit())
	}
	p, err := sequential.Case{Workload: "wavenet:stacks=1,layers_per_stack=4,batch=8,length=512", GPU: "p100", Devices: 2}.Problem()
	if err != nil {
		t.Fatal(err)
	}
	o, err := sequential.Placer{Policy: policy}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Score.Feasible() {
		t.Errorf("the placement lacks %v", o.Score.Overflow)
	}
}

func Example() {
	policy, err := pretrained.Policy()
	if err != nil {
		panic(err)
	}
	fmt.Println(policy.Weights() < 100000)
	// Output: true
}

// The built-in networks of moves say what they have learned from, and rank the moves of a
// search that they have not seen: what brings something above what brings nothing, in most
// pairs.
func TestMoves(t *testing.T) {
	for _, tasks := range []plan.Tasks{plan.Place, plan.AllTasks} {
		n, err := pretrained.Moves(tasks)
		if err != nil {
			t.Fatal(err)
		}
		if n.Card.Moves == 0 || len(n.Card.Trained) < 20 || len(n.Card.HeldOut) > 0 {
			t.Errorf("%v: card %+v", tasks, n.Card)
		}
		const otherSeed, index = 8, 5
		s, err := proposer.Collect(t.Context(), tasks, otherSeed, index, 1000)
		if err != nil {
			t.Fatal(err)
		}
		score := make([]float32, len(s.Gain))
		n.Rank(s.X, score)
		right, pairs := 0, 0
		for i, gain := range s.Gain {
			for k, other := range s.Gain {
				if gain > 0 && other == 0 {
					pairs++
					if score[i] > score[k] {
						right++
					}
				}
			}
		}
		if share := float64(right) / float64(pairs); share < 0.7 {
			t.Errorf("%v: %.2f of %d pairs are ranked right", tasks, share, pairs)
		} else {
			t.Logf("%v: %.2f of %d pairs are ranked right", tasks, share, pairs)
		}
	}
}
