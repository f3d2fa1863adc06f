package strategies

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// randomFamily is a training step of a random graph of a dozen products, each of one or two
// tensors before it and a weight, at any batch. All of its passes' FLOPs are of samples.
func randomFamily(seed uint64) Family {
	return func(batch int64) (*graph.Graph, error) {
		rng := rand.New(rand.NewPCG(seed, 0x66)) // "f"
		b := graph.NewBuilder(fmt.Sprintf("random%d", seed))
		layered := rng.IntN(2) == 0
		layer := func(k int) int32 {
			if layered {
				return int32(k + 1)
			}
			return 0
		}
		samples := func(width int64) graph.Tensor {
			return graph.Tensor{DType: graph.F32, Bytes: units.Bytes(4 * width * batch)}
		}
		n := 4 + rng.IntN(9)
		width := 1 + rng.Int64N(64)
		x := b.Op(graph.Op{Name: "x", Kind: "Placeholder", Layer: layer(0), Forward: graph.None}, nil, samples(width))
		out := []graph.TensorID{b.Output(x, 0)} // 0 is the input, k+1 of product k
		forward, weight, params, flops := make([]graph.OpID, n), make([]graph.TensorID, n), make([]int64, n), make([]float64, n)
		reads, readers := make([][]int, n), make([][]int, n+1)
		for k := range n {
			params[k], flops[k] = 1+rng.Int64N(1000), float64(1+rng.IntN(1_000_000))
			reads[k] = []int{k} // each reads the one before, so that none is idle
			if other := rng.IntN(k + 1); other != k && rng.IntN(2) == 0 {
				reads[k] = append(reads[k], other)
			}
			w := b.Op(graph.Op{Name: fmt.Sprintf("w%d", k), Kind: "VariableV2", Layer: layer(k), Group: int32(k + 1), Params: params[k], Resident: units.Bytes(4 * params[k]), Forward: graph.None},
				nil, graph.Tensor{DType: graph.F32, Bytes: units.Bytes(4 * params[k]), Resident: true})
			weight[k] = b.Output(w, 0)
			in := []graph.TensorID{weight[k]}
			for _, r := range reads[k] {
				in = append(in, out[r])
				readers[r] = append(readers[r], k)
			}
			forward[k] = b.Op(graph.Op{Name: fmt.Sprintf("f%d", k), Kind: "MatMul", Layer: layer(k), FLOPs: units.FLOPs(flops[k] * float64(batch)), Forward: graph.None}, in, samples(width))
			out = append(out, b.Output(forward[k], 0))
		}
		loss := b.Op(graph.Op{Name: "loss", Kind: "Mul", Layer: layer(n - 1), FLOPs: units.FLOPs(batch), Forward: graph.None}, []graph.TensorID{out[n]}, samples(width))
		grads := make([]map[int]graph.TensorID, n) // of what product k reads
		for k := n - 1; k >= 0; k-- {
			in := []graph.TensorID{out[k+1], weight[k]}
			for _, r := range readers[k+1] {
				in = append(in, grads[r][k+1])
			}
			if k == n-1 {
				in = append(in, b.Output(loss, 0))
			}
			outs := []graph.Tensor{{DType: graph.F32, Bytes: units.Bytes(4 * params[k])}}
			for range reads[k] {
				outs = append(outs, samples(width))
			}
			op := b.Op(graph.Op{Name: fmt.Sprintf("b%d", k), Kind: "MatMul", Phase: graph.Backward, Layer: layer(k), FLOPs: units.FLOPs(2 * flops[k] * float64(batch)), Forward: forward[k]}, in, outs...)
			grads[k] = map[int]graph.TensorID{}
			for at, r := range reads[k] {
				grads[k][r] = b.Output(op, at+1)
			}
			b.Op(graph.Op{Name: fmt.Sprintf("u%d", k), Kind: "ApplyGradientDescent", Phase: graph.Update, Layer: layer(k), Group: int32(k + 1), Forward: graph.None}, []graph.TensorID{weight[k], b.Output(op, 0)})
		}
		return b.Build()
	}
}

// TestConservedRandom: TestConserved on random graphs, of which each pass's FLOPs of all ranks
// and micro-batches add up to those of the whole batch.
func TestConservedRandom(t *testing.T) {
	cases := 0
	for seed := range uint64(60) {
		m, err := hw.Take("a100", 8, false)
		if err != nil {
			t.Fatal(err)
		}
		j, err := NewJudge(source(), m)
		if err != nil {
			t.Fatal(err)
		}
		x := newModels(randomFamily(seed), 16)
		whole, err := x.graph(variant{batch: 16})
		if err != nil {
			t.Fatal(err)
		}
		all := meshes8()
		for _, schedule := range []strategy.Schedule{strategy.GPipe, strategy.Interleaved, strategy.Free} {
			s := piped(schedule, 2, 4, 1)
			if schedule == strategy.Interleaved {
				s.Chunks = 2
			}
			all = append(all, s)
		}
		for _, s := range all {
			if s.Tensor > 1 { // nothing here can be split
				continue
			}
			step, err := x.derive(j, s, false)
			if err != nil {
				if strings.Contains(err.Error(), "can be cut into") {
					continue
				}
				t.Fatalf("seed %d, %v: %v", seed, s, err)
			}
			cases++
			conserved(t, x, s, step)
			want, got := [2]float64{}, [2]float64{} // forward, backward
			for i := range graph.OpID(whole.NumOps()) {
				if o := whole.Op(i); o.Kind == "MatMul" {
					want[o.Phase] += float64(o.FLOPs)
				}
			}
			for i := range graph.OpID(step.Graph.NumOps()) {
				if o := step.Graph.Op(i); o.Kind == "MatMul" {
					got[o.Phase] += float64(o.FLOPs)
				}
			}
			for phase := range want {
				if math.Abs(got[phase]-want[phase]) > 1e-9*want[phase] {
					t.Errorf("seed %d, %v: phase %d does %g FLOPs, the whole batch %g", seed, s, phase, got[phase], want[phase])
				}
			}
		}
	}
	if cases < 1000 {
		t.Errorf("%d cases, want 1000 at least", cases)
	}
}
