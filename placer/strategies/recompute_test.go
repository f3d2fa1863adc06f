package strategies

import (
	"fmt"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/workloads"
)

// TestRecomputedViewsOfWeights: a layer that computes its activations again reads its weights
// by views of its own, which are in the co-location group of the weight. They stay within the
// pass that they belong to, wherever the weight is.
func TestRecomputedViewsOfWeights(t *testing.T) {
	const batch = 8
	family := func(batch int64) (*graph.Graph, error) {
		return workloads.Build(fmt.Sprintf("gnmt:layers=8,source=2,target=2,batch=%d", batch))
	}
	g, err := family(batch)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", 8, false)
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewComparison(problem.Source{Graph: g}, family, m, Config{Batch: batch, Clock: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	for _, mesh := range []strategy.Mesh{{Data: 4, Pipeline: 2, Tensor: 1}, {Data: 2, Pipeline: 4, Tensor: 1}, {Data: 1, Pipeline: 8, Tensor: 1}} {
		s := strategy.Strategy{Mesh: mesh, MicroBatches: 2, Chunks: 1, Recompute: strategy.RecomputeLayers, Bucket: strategy.DefaultBucket}
		if _, err := x.Simulate(s); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}
