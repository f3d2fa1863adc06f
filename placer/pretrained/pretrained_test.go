package pretrained_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"placer/baselines/search/anneal"
	"placer/placer/policy/sequential"
	"placer/placer/pretrained"
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

// The built-in network of moves says what it has learned from, and finds a move that
// empties the busiest device better than one that fills it.
func TestMoves(t *testing.T) {
	n, err := pretrained.Moves()
	if err != nil {
		t.Fatal(err)
	}
	if n.Card.Moves == 0 || len(n.Card.Trained) < 20 || len(n.Card.HeldOut) > 0 {
		t.Errorf("card %+v", n.Card)
	}
	x, score := make([]float32, 2*anneal.NumMoveFeatures), make([]float32, 2)
	k := slices.Index(anneal.MoveFeatureNames(), "most_change")
	x[k], x[anneal.NumMoveFeatures+k] = -0.5, 0.5
	if n.Rank(x, score); score[0] <= score[1] {
		t.Errorf("scores %v", score)
	}
}
