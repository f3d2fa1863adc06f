package train_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/train"
	"placer/units"
)

var update = flag.Bool("update", false, "rewrite golden files")

// net builds forward graphs for the tests in TensorFlow's way: a variable, its
// read, and ops named after their kind.
type net struct {
	*graph.Builder
	layer int32
	n     map[string]int
}

func newNet(name string) *net { return &net{graph.NewBuilder(name), 0, map[string]int{}} }

func tensor(t graph.DType, shape ...int64) graph.Tensor {
	return graph.Tensor{DType: t, Shape: append(graph.Shape{}, shape...), Bytes: graph.Auto}
}

func f32(shape ...int64) graph.Tensor { return tensor(graph.F32, shape...) }
func i32(shape ...int64) graph.Tensor { return tensor(graph.I32, shape...) }

func (n *net) op(kind graph.Kind, in []graph.TensorID, outs ...graph.Tensor) graph.TensorID {
	return n.add(graph.Op{Kind: kind}, in, outs...)
}

func (n *net) add(o graph.Op, in []graph.TensorID, outs ...graph.Tensor) graph.TensorID {
	k := n.n[string(o.Kind)]
	n.n[string(o.Kind)]++
	o.Name = string(o.Kind)
	if k > 0 {
		o.Name = fmt.Sprintf("%s_%d", o.Name, k)
	}
	o.Layer, o.Bytes, o.Forward = n.layer, graph.Auto, graph.None
	f, _ := graph.FactsOf(o.Kind)
	if o.FLOPs == 0 {
		m := int64(0)
		for _, t := range outs {
			e, _ := t.Shape.Elements()
			m = max(m, e)
		}
		o.FLOPs = units.FLOPs(f.FLOPsPerElement * float64(m))
	}
	return n.Output(n.Op(o, in, outs...), 0)
}

// variable returns the read of a new trainable variable of f32.
func (n *net) variable(name string, shape ...int64) graph.TensorID {
	return n.variableOf(graph.F32, name, shape...)
}

// variableOf is variable of another type.
func (n *net) variableOf(t graph.DType, name string, shape ...int64) graph.TensorID {
	x := tensor(t, shape...)
	e, _ := x.Shape.Elements()
	x.Resident = true
	v := n.Op(graph.Op{Name: name, Kind: "VariableV2", DType: t, Params: e, Resident: units.Bytes(t.Size() * e), Layer: n.layer, Bytes: graph.Auto}, nil, x)
	r := n.Op(graph.Op{Name: name + "/read", Kind: "Identity", DType: t, Layer: n.layer, Bytes: graph.Auto}, []graph.TensorID{n.Output(v, 0)}, x)
	return n.Output(r, 0)
}

func (n *net) matMul(a, b graph.TensorID) graph.TensorID {
	x, y := n.TensorAt(a).Shape, n.TensorAt(b).Shape
	m := graph.GEMM{Batch: 1, M: x[0], N: y[1], K: x[1]}
	return n.add(graph.Op{Kind: "MatMul", GEMM: m, FLOPs: m.FLOPs()}, []graph.TensorID{a, b}, f32(m.M, m.N))
}

func (n *net) build(t testing.TB) *graph.Graph {
	t.Helper()
	g, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func derive(t testing.TB, g *graph.Graph, cfg train.Config) *graph.Graph {
	t.Helper()
	d, err := train.Derive(g, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// mlp is x[8,16] -> relu(x w1 + b1) -> w2, b2 -> cross entropy -> mean.
func mlp(t testing.TB) *graph.Graph {
	n := newNet("mlp")
	x := n.op("Placeholder", nil, f32(8, 16))
	labels := n.op("Placeholder", nil, i32(8))
	n.layer = 1
	h := n.op("BiasAdd", []graph.TensorID{n.matMul(x, n.variable("w1", 16, 32)), n.variable("b1", 32)}, f32(8, 32))
	h = n.op("Relu", []graph.TensorID{h}, f32(8, 32))
	n.layer = 2
	y := n.op("BiasAdd", []graph.TensorID{n.matMul(h, n.variable("w2", 32, 10)), n.variable("b2", 10)}, f32(8, 10))
	loss := n.op("SparseSoftmaxCrossEntropyWithLogits", []graph.TensorID{y, labels}, f32(8), f32(8, 10))
	axes := n.op("Const", nil, i32(1))
	n.op("Mean", []graph.TensorID{loss, axes}, f32())
	return n.build(t)
}

// text lists the ops of g from first on: name, kind, inputs, what it waits for.
func text(g *graph.Graph, first graph.OpID) string {
	var b strings.Builder
	label := func(t graph.TensorID) string {
		p := g.Tensor(t).Producer
		at, _ := g.Outputs(p)
		if t > at {
			return fmt.Sprintf("%s:%d", g.Op(p).Name, t-at)
		}
		return g.Op(p).Name
	}
	for i := first; int(i) < g.NumOps(); i++ {
		o := g.Op(i)
		fmt.Fprintf(&b, "%s %s(", o.Name, o.Kind)
		for k, t := range g.Inputs(i) {
			if k > 0 {
				b.WriteString(", ")
			}
			b.WriteString(label(t))
		}
		b.WriteString(")")
		at, end := g.Outputs(i)
		for t := at; t < end; t++ {
			fmt.Fprintf(&b, " %v%v", g.Tensor(t).DType, g.Tensor(t).Shape)
		}
		if !o.GEMM.IsZero() {
			fmt.Fprintf(&b, " gemm=%dx%dx%dx%d", o.GEMM.Batch, o.GEMM.M, o.GEMM.N, o.GEMM.K)
		}
		fmt.Fprintf(&b, " flops=%g bytes=%d", float64(o.FLOPs), o.Bytes)
		if o.Group > 0 {
			fmt.Fprintf(&b, " group=%d", o.Group)
		}
		for k, c := range g.Control(i) {
			if k == 0 {
				b.WriteString(" after")
			}
			b.WriteString(" " + g.Op(c).Name)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestGoldenMLP(t *testing.T) {
	static := train.Config{Optimizer: train.SGD, StaticShapes: true, ClipGlobalNorm: true, InitOps: true}
	for _, c := range []struct {
		name string
		cfg  train.Config
	}{{"adam", train.Default()}, {"sgd_static_clip", static}} {
		t.Run(c.name, func(t *testing.T) {
			g := mlp(t)
			got := text(derive(t, g, c.cfg), graph.OpID(g.NumOps()))
			file := "testdata/mlp_" + c.name + ".txt"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
