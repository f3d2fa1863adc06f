package strategies

import (
	"fmt"
	"math"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// even is inference of n layers of equal products, of which each sample has its own rows, with
// or without something that samples hold.
func even(n int, state bool) Family {
	return func(batch int64) (*graph.Graph, error) {
		const d = 4096
		b := graph.NewBuilder("even")
		of := func(rows int64) graph.Tensor {
			return graph.Tensor{DType: graph.F32, Bytes: units.Bytes(4 * rows)} // little crosses links
		}
		x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Layer: 1, Forward: graph.None}, nil, of(1024*batch)), 0)
		for k := range n {
			layer := int32(k + 1)
			held := of(d)
			held.Resident = true
			w := b.Op(graph.Op{Name: fmt.Sprintf("w%d", k), Kind: "VariableV2", Layer: layer, Params: d * d, Resident: 1, Forward: graph.None}, nil, held)
			m := graph.GEMM{Batch: 1, M: 1024 * batch, N: d, K: d}
			in := []graph.TensorID{x, b.Output(w, 0)}
			if state {
				old := of(batch)
				old.Resident = true
				in = append(in, b.Output(b.Op(graph.Op{Name: fmt.Sprintf("s%d", k), Kind: "VariableV2", Layer: layer, Resident: old.Bytes, Forward: graph.None}, nil, old), 0))
			}
			x = b.Output(b.Op(graph.Op{Name: fmt.Sprintf("f%d", k), Kind: "MatMul", Layer: layer, GEMM: m, FLOPs: m.FLOPs(), Forward: graph.None}, in, of(1024*batch)), 0)
		}
		return b.Build()
	}
}

// TestStreams: in a stream of steps a pipeline of even stages works all the time: a step takes as
// long as a stage needs for its micro-batches. Of samples that hold something fewer micro-batches
// than stages take as long as a micro-batch takes through all stages.
func TestStreams(t *testing.T) {
	const stages, batch = 4, 16
	m, err := hw.Take("h100", stages, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []bool{false, true} {
		f := even(stages, state)
		g, err := f(batch)
		if err != nil {
			t.Fatal(err)
		}
		s := source()
		s.Graph = g
		x, err := NewComparison(s, f, m, Config{Batch: batch, Eager: true, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		one := func(micro int) float64 { // of a micro-batch on a stage
			_, _, times, err := x.models.of(x.judge, variant{batch / int64(micro), strategy.RecomputeNothing, 0})
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, v := range times[0] {
				sum += v
			}
			return sum / stages
		}
		for _, schedule := range []strategy.Schedule{strategy.GPipe, strategy.OneFOneB} {
			for _, micro := range []int{1, 2, 4, 8, 16} {
				at := strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: stages, Tensor: 1}, Schedule: schedule, MicroBatches: micro, Chunks: 1, Bucket: 1}
				r, err := x.Simulate(at)
				if err != nil {
					t.Fatal(err)
				}
				got, err := x.every(at, r)
				if err != nil {
					t.Fatal(err)
				}
				want := float64(micro) * one(micro)
				if state {
					want = max(want, stages*one(micro))
				}
				if math.Abs(got-want) > 0.02*want {
					t.Errorf("%v, samples that hold something: %t: a step every %.4g s, want %.4g", at, state, got, want)
				}
			}
		}
		row := x.best(t.Context(), NamePipeline, x.divided(strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: stages, Tensor: 1}, Schedule: strategy.OneFOneB, Chunks: 1, Bucket: 1}))
		if row.Stream == nil || row.Stream.Every > row.Seconds {
			t.Fatalf("%+v is no stream shorter than its steps of %g s", row.Stream, row.Seconds)
		}
		if got := row.Stream.Strategy.MicroBatches; state == (got == 1) {
			t.Errorf("samples that hold something: %t: a stream of %d micro-batches", state, got)
		}
	}
}
