package strategy

import (
	"slices"
	"testing"

	"placer/graph"
	"placer/units"
)

// lossOf is a model of a product with a vocabulary of 48 columns and a loss that build makes of its
// scores, [32,48], and targets, [32] or [32,1].
func lossOf(t *testing.T, build func(b *graph.Builder, scores, targets graph.TensorID)) (*graph.Graph, *Split) {
	t.Helper()
	b := graph.NewBuilder("loss")
	f32 := func(dims ...int64) graph.Tensor {
		return graph.Tensor{DType: graph.F32, Shape: dims, Bytes: graph.Auto}
	}
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, f32(32, 16)), 0)
	w := b.Output(b.Op(graph.Op{Name: "w", Kind: "VariableV2", Params: 16 * 48, Resident: 16 * 48 * 4, Forward: graph.None}, nil, f32(16, 48)), 0)
	targets := b.Output(b.Op(graph.Op{Name: "targets", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{DType: graph.I64, Shape: []int64{32, 1}, Bytes: graph.Auto}), 0)
	y := b.Output(b.Op(graph.Op{Name: "scores", Kind: "MatMul", GEMM: graph.GEMM{Batch: 1, M: 32, N: 48, K: 16}, Forward: graph.None}, []graph.TensorID{x, w}, f32(32, 48)), 0)
	build(b, y, targets)
	m := modelOf(t, b)
	g := m.Micro
	how := Single(1)
	how.Tensor, how.Vocabulary = 4, true
	return g, FindSplit(m, how)
}

// TestLosses: a cross entropy of a LogSoftmax and an op that picks the target's row by row is split
// by the vocabulary as one of one op is; ranks agree on the largest score and the sum of each row, f32
// each, then on what is picked. Scores that something else reads are whole.
func TestLosses(t *testing.T) {
	op := func(b *graph.Builder, name string, kind graph.Kind, out graph.Tensor, in ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: kind, Forward: graph.None}, in, out), 0)
	}
	f32 := func(dims ...int64) graph.Tensor {
		return graph.Tensor{DType: graph.F32, Shape: dims, Bytes: graph.Auto}
	}
	for _, c := range []struct {
		name  string
		build func(b *graph.Builder, scores, targets graph.TensorID)
		want  []units.Bytes
	}{
		{"one number", func(b *graph.Builder, y, targets graph.TensorID) {
			op(b, "loss", "NegativeLogLikelihoodLoss", f32(), op(b, "log", "LogSoftmax", f32(32, 48), y), targets)
		}, []units.Bytes{128, 128, 4}},
		{"picked", func(b *graph.Builder, y, targets graph.TensorID) {
			z := op(b, "log", "LogSoftmax", f32(32, 48), op(b, "scaled", "Neg", f32(32, 48), y))
			op(b, "mean", "Mean", f32(), op(b, "loss", "GatherElements", f32(32, 1), z, targets))
		}, []units.Bytes{128, 128, 128}},
		{"shifted", func(b *graph.Builder, y, targets graph.TensorID) {
			z := op(b, "log", "LogSoftmax", f32(31, 48), op(b, "rows", "Slice", f32(31, 48), y))
			op(b, "loss", "NegativeLogLikelihoodLoss", f32(31), z, targets)
		}, []units.Bytes{124, 124, 124}},
		{"columns", func(b *graph.Builder, y, targets graph.TensorID) {
			z := op(b, "log", "LogSoftmax", f32(32, 24), op(b, "half", "Slice", f32(32, 24), y))
			op(b, "loss", "NegativeLogLikelihoodLoss", f32(), z, targets)
		}, nil},
		{"no probabilities", func(b *graph.Builder, y, targets graph.TensorID) {
			op(b, "loss", "NegativeLogLikelihoodLoss", f32(), y, targets)
		}, nil},
		{"also read whole", func(b *graph.Builder, y, targets graph.TensorID) {
			op(b, "loss", "NegativeLogLikelihoodLoss", f32(), op(b, "log", "LogSoftmax", f32(32, 48), y), targets)
			op(b, "best", "ArgMax", f32(32), y)
		}, nil},
	} {
		g, s := lossOf(t, c.build)
		var got []units.Bytes
		for i := range graph.OpID(g.NumOps()) {
			if s.Statistics[i] {
				got = append(got, s.statistics(i)...)
			}
			if o := g.Op(i); o.Name == "w" && s.Shared[i] != (c.want != nil) {
				t.Errorf("%s: the weight is split: %v", c.name, s.Shared[i])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: ranks agree on %v, want %v", c.name, got, c.want)
		}
	}
}
