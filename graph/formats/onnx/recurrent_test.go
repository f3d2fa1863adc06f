package onnx

import (
	"fmt"
	"math"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/roofline"
	"placer/units"
)

// unrolled is an LSTM over steps as single ops: the product of the whole input, and for
// each step the state's product, with the gates and the cell in the same kernel. kernels
// are the ops of each.
func unrolled(t *testing.T, steps, batch, input, hidden int64) (g *graph.Graph, kernels [][]graph.OpID) {
	t.Helper()
	b := graph.NewBuilder("unrolled")
	op := func(name string, kind graph.Kind, product graph.GEMM, flops int64, in []graph.TensorID, outs ...graph.Shape) graph.OpID {
		var made []graph.Tensor
		for _, s := range outs {
			made = append(made, graph.Tensor{Shape: s, Bytes: graph.Auto})
		}
		return b.Op(graph.Op{Name: name, Kind: kind, GEMM: product, FLOPs: product.FLOPs() + units.FLOPs(flops), Bytes: graph.Auto, Forward: graph.None}, in, made...)
	}
	x := b.Output(op("x", "Placeholder", graph.GEMM{}, 0, nil, graph.Shape{steps * batch, input}), 0)
	w := b.Output(op("w", "Initializer", graph.GEMM{}, 0, nil, graph.Shape{input, 4 * hidden}), 0)
	r := b.Output(op("r", "Initializer", graph.GEMM{}, 0, nil, graph.Shape{hidden, 4 * hidden}), 0)
	first := op("states", "Placeholder", graph.GEMM{}, 0, nil, graph.Shape{batch, hidden}, graph.Shape{batch, hidden})
	state, cell := b.Output(first, 0), b.Output(first, 1)
	var parts []graph.Shape
	for range steps {
		parts = append(parts, graph.Shape{batch, 4 * hidden})
	}
	all := op("input", "MatMul", graph.GEMM{Batch: 1, M: steps * batch, N: 4 * hidden, K: input}, 0, []graph.TensorID{x, w}, parts...)
	kernels = append(kernels, []graph.OpID{all})
	for k := range int(steps) {
		m := op(fmt.Sprint("state", k), "MatMul", graph.GEMM{Batch: 1, M: batch, N: 4 * hidden, K: hidden}, 0, []graph.TensorID{state, r}, parts[0])
		s := op(fmt.Sprint("gates", k), "AddV2", graph.GEMM{}, batch*4*hidden, []graph.TensorID{b.Output(m, 0), b.Output(all, k)}, parts[0])
		c := op(fmt.Sprint("cell", k), "Tanh", graph.GEMM{}, 36*batch*hidden, []graph.TensorID{b.Output(s, 0), cell}, graph.Shape{batch, hidden}, graph.Shape{batch, hidden})
		state, cell = b.Output(c, 0), b.Output(c, 1)
		kernels = append(kernels, []graph.OpID{m, s, c})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g, kernels
}

// batch is an LSTM as one batch of all its steps, which no device can run.
func batch(t *testing.T, layer *graph.Op, steps, rows, input, hidden int64) *graph.Graph {
	t.Helper()
	o := *layer
	o.Repeats, o.Bytes = 0, units.Bytes(4*(steps*rows*(input+hidden)+4*hidden*(input+hidden)))
	o.GEMM, _ = gemm([]graph.GEMM{{Batch: 1, M: steps * rows, N: 4 * hidden, K: input}, {Batch: steps, M: rows, N: 4 * hidden, K: hidden}})
	b := graph.NewBuilder("batch")
	b.Op(o, nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A recurrent layer costs what its steps cost one by one, within 6% in the mean of layers
// and GPUs and within 30% each, where tiles of its product come out less well than those of
// a step. As one batch it would be up to 87 times as fast.
func TestRecurrentIsItsSteps(t *testing.T) {
	const mean, most = 0.06, 0.3
	sum, count, least, largest := 0., 0., math.Inf(1), 0.
	for _, c := range []struct{ steps, batch, input, hidden int64 }{
		{100, 1, 256, 256}, {64, 16, 128, 512}, {50, 64, 1024, 1024}, {35, 20, 640, 640}, {200, 128, 80, 320}, {20, 256, 2048, 1024},
	} {
		layer, _ := importModel(t, modelOf(nodeOf("", "LSTM", list("x", "w", "r"), list("y"), intAttr("hidden_size", c.hidden)),
			inputOf("x", int(c.steps), int(c.batch), int(c.input)), initOf(tensorOf("w", elemFloat, 1, 4*c.hidden, c.input)), initOf(tensorOf("r", elemFloat, 1, 4*c.hidden, c.hidden)), outputOf("y")))
		o, _ := last(layer)
		single, kernels := unrolled(t, c.steps, c.batch, c.input, c.hidden)
		for _, name := range []string{"p100", "v100", "a100", "h100"} {
			m, err := hw.Take(name, 1, false)
			if err != nil {
				t.Fatal(err)
			}
			of := func(g *graph.Graph) *roofline.Model {
				r, err := roofline.New(g, m, roofline.Default())
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			got, want := of(layer).OpSeconds(graph.OpID(layer.NumOps()-1), 0), units.Seconds(0)
			r := of(single)
			for _, ops := range kernels {
				want += r.Kernel(ops, 0).Seconds()
			}
			off := float64(got/want) - 1
			ratio := float64(got / of(batch(t, o, c.steps, c.batch, c.input, c.hidden)).OpSeconds(0, 0))
			t.Logf("%+v on %s: %v, its steps %v: %+.1f%%; %.1f times one batch", c, name, got, want, 100*off, ratio)
			if math.Abs(off) > most {
				t.Errorf("%+v on %s: %v, its steps %v: %+.0f%%", c, name, got, want, 100*off)
			}
			sum, count, least, largest = sum+math.Abs(off), count+1, min(least, ratio), max(largest, ratio)
		}
	}
	t.Logf("mean %.1f%%; %.1f to %.1f times one batch", 100*sum/count, least, largest)
	if sum/count > mean || largest < 20 {
		t.Errorf("mean %.1f%%, want at most %.0f%%; at most %.1f times one batch", 100*sum/count, 100*mean, largest)
	}
}
