package strategies

import (
	"context"
	"fmt"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/units"
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

// TestRecomputationIsFound: where stages fit if their activations are computed again, the row of
// a pipeline finds that, however unevenly steps that keep them are cut.
func TestRecomputationIsFound(t *testing.T) {
	for _, name := range []string{"llama:layers=12,hidden=1024,heads=8,kv_heads=8,ffn=4096,seq=512,vocab=8000,attention=products", "llama:layers=7,hidden=256,heads=4,kv_heads=4,ffn=1024,seq=64,vocab=8000"} {
		m, err := hw.Take("a100", 4, false)
		if err != nil {
			t.Fatal(err)
		}
		row := func() Row {
			x, err := NewComparison(source(), family(name), m, Config{Batch: 16, Clock: func() float64 { return 0 }})
			if err != nil {
				t.Fatal(err)
			}
			all := x.divided(piped(strategy.OneFOneB, 4, 0, 1))
			if m.Devices[0].Memory == 1<<40 { // what the least needs
				least := units.Bytes(1 << 40)
				for _, s := range all {
					s.Recompute = strategy.RecomputeLayers
					r, err := x.Simulate(s)
					if err != nil {
						t.Fatal(err)
					}
					least = min(least, r.Fullest())
				}
				for d := range m.Devices {
					m.Devices[d].Memory = least + least/50
				}
			}
			return x.best(context.Background(), NamePipeline, all)
		}
		for d := range m.Devices {
			m.Devices[d].Memory = 1 << 40
		}
		row()
		if r := row(); r.Result == nil || r.Overflow > 0 {
			t.Errorf("%s: %v lacks %v of %v each: %s", name, r.Strategy, r.Overflow, m.Devices[0].Memory, r.Why)
		}
	}
}

// TestMoreMicroBatchesInPlaceOfRecomputation: where replicas do not fit as they are, the fewest
// micro-batches fit if layers compute their activations again, and more fit without, the row has
// the quicker of the two.
func TestMoreMicroBatchesInPlaceOfRecomputation(t *testing.T) {
	m, err := hw.Take("a100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	memory := m.Devices[0].Memory
	compare := func() *Comparison {
		x, err := NewComparison(source(), family("llama:layers=6,hidden=1024,heads=8,kv_heads=8,ffn=2816,seq=1024,vocab=1000"), m, Config{Batch: 16, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := compare()
	mesh := strategy.Strategy{Mesh: strategy.Mesh{Data: 2, Pipeline: 1, Tensor: 1}, Chunks: 1, Bucket: strategy.DefaultBucket}
	at := func(micro int, how strategy.Recompute) *Result {
		s := mesh
		s.MicroBatches, s.Recompute = micro, how
		r, err := x.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	whole, again, half := at(1, strategy.RecomputeNothing), at(1, strategy.RecomputeLayers), at(2, strategy.RecomputeNothing)
	room := max(again.Fullest(), half.Fullest())
	if room >= whole.Fullest() || half.Seconds >= again.Seconds || room > memory {
		t.Fatalf("the case does not show it: %v and %v, %v by recomputation in %v and %v", whole.Fullest(), half.Fullest(), again.Fullest(), again.Seconds, half.Seconds)
	}
	for d := range m.Devices {
		m.Devices[d].Memory = (room + whole.Fullest()) / 2
	}
	row := compare().best(context.Background(), NameData, x.divided(mesh))
	if row.Result == nil || row.Overflow > 0 || row.Strategy.Recompute != strategy.RecomputeNothing || row.Strategy.MicroBatches != 2 {
		t.Errorf("%v, %s; want two micro-batches", row.Strategy, row.Why)
	}
}

// TestRecomputationGathersNothingMore: shared parameters are gathered for the forward pass and
// once more for the backward pass, in which a layer is computed again by what its gradients read.
// Look-ups that are computed again read a table that no gradient does.
func TestRecomputationGathersNothingMore(t *testing.T) {
	const hidden, vocab = 256, 1000
	x, j := models8(t, fmt.Sprintf("llama:layers=4,hidden=%d,heads=4,kv_heads=4,ffn=512,seq=64,vocab=%d", hidden, vocab))
	var bytes [2]units.Bytes
	for k := range bytes {
		s := strategy.Strategy{Mesh: strategy.Mesh{Data: 8, Pipeline: 1, Tensor: 1}, Sharding: strategy.ShardAll, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20, Recompute: strategy.Recompute(k) * strategy.RecomputeLayers}
		step, err := x.derive(j, s, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range step.Collectives {
			if c.Kind == strategy.AllGather {
				bytes[k] += c.Bytes
			}
		}
	}
	if more := bytes[1] - bytes[0]; more != 0 && more != 2*hidden*vocab {
		t.Errorf("%v are gathered, with layers computed again %v", bytes[0], bytes[1])
	}
}
