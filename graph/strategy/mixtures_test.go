package strategy

import (
	"testing"

	"placer/graph"
)

// TestMixturesOfBatches: products of [E,R,in] with [E,in,out], as PyTorch's bmm and baddbmm (which
// reads its bias first) are where all experts have the same room, are of experts with what works on
// their rows between, and with their weights and biases; products of heads, or of one weight, are not.
func TestMixturesOfBatches(t *testing.T) {
	const experts, room, in, out = 8, 5, 16, 32
	b := graph.NewBuilder("batches")
	f32 := func(dims ...int64) graph.Tensor {
		return graph.Tensor{DType: graph.F32, Shape: dims, Bytes: graph.Auto}
	}
	op := func(name string, kind graph.Kind, o graph.Tensor, x ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: kind, Forward: graph.None}, x, o), 0)
	}
	variable := func(name string, dims ...int64) graph.TensorID {
		n := int64(1)
		for _, d := range dims {
			n *= d
		}
		return b.Output(b.Op(graph.Op{Name: name, Kind: "VariableV2", Params: n, Forward: graph.None}, nil, f32(dims...)), 0)
	}
	product := func(name string, m graph.GEMM, o graph.Tensor, x ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: "BatchMatMulV2", GEMM: m, Forward: graph.None}, x, o), 0)
	}
	x := op("sent", "Placeholder", f32(experts, room, in))
	h := product("up", graph.GEMM{Batch: experts, M: room, N: out, K: in}, f32(experts, room, out), x, variable("of up", experts, in, out))
	h = op("between", "Relu", f32(experts, room, out), h)
	y := product("down", graph.GEMM{Batch: experts, M: room, N: in, K: out}, f32(experts, room, in), variable("of bias", experts, 1, in), h, variable("of down", experts, out, in))
	op("whole", "Sum", f32(), y)
	z := product("scores", graph.GEMM{Batch: experts, M: room, N: room, K: in}, f32(experts, room, room), x, x)
	product("shared", graph.GEMM{Batch: experts, M: room, N: 3, K: room}, f32(experts, room, 3), z, variable("one", room, 3))
	m := modelOf(t, b)
	g := m.Micro
	found := FindMixtures(m)
	if found.Experts != experts {
		t.Errorf("%d experts, want %d", found.Experts, experts)
	}
	want := map[string]bool{"up": true, "of up": true, "between": true, "down": true, "of down": true, "of bias": true}
	for i := range graph.OpID(g.NumOps()) {
		if name := g.Op(i).Name; found.Of[i] != want[name] {
			t.Errorf("%s is of experts: %v", name, found.Of[i])
		}
	}
}
