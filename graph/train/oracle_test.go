package train_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/graph/train"

	"pgregory.net/rapid"
)

// gradients computes, with the derived graph d, the gradient that each update
// of plain SGD applies, by variable.
func gradients(d *graph.Graph, m *machine) map[graph.OpID][]float64 {
	m.run(d.NumOps())
	got := map[graph.OpID][]float64{}
	for i := graph.OpID(0); int(i) < d.NumOps(); i++ {
		in := d.Inputs(i)
		switch d.Op(i).Kind {
		case "ApplyGradientDescent":
			got[d.Tensor(in[0]).Producer] = m.t[in[2]].v
		case "ScatterSub": // the learning rate is 1
			v := zeros(d.Tensor(in[0]).Shape)
			row := len(v.v) / int(v.shape[0])
			for r, at := range m.t[in[1]].v {
				for c := range row {
					v.v[int(at)*row+c] += m.t[in[2]].v[r*row+c]
				}
			}
			got[d.Tensor(in[0]).Producer] = v.v
		}
	}
	return got
}

// checkGradients compares the derived gradients of every variable with central
// differences of the loss, the last tensor of g.
func checkGradients(t rapid.TB, g *graph.Graph, cfg train.Config, seed uint64) {
	cfg.Optimizer = train.SGD
	d, err := train.Derive(g, cfg)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	given := map[graph.OpID]array{}
	var vars []graph.OpID
	for i := graph.OpID(0); int(i) < g.NumOps(); i++ {
		if c := g.Op(i).Kind.Class(); c != graph.ClassVariable && c != graph.ClassInput {
			continue
		}
		first, _ := g.Outputs(i)
		x := zeros(g.Tensor(first).Shape)
		for k := range x.v {
			if g.Tensor(first).DType == graph.I32 {
				x.v[k] = float64(rng.IntN(3))
			} else {
				x.v[k] = 0.3 + rng.Float64() // positive, for Log and Sqrt
			}
		}
		given[i] = x
		if g.Op(i).Params > 0 {
			vars = append(vars, i)
		}
	}
	got := gradients(d, &machine{g: d, static: cfg.StaticShapes, given: given})
	last := graph.TensorID(g.NumTensors() - 1)
	loss := func() float64 {
		m := &machine{g: g, given: given}
		m.run(g.NumOps())
		total := 0.0
		for _, x := range m.t[last].v {
			total += x
		}
		return total
	}
	for _, v := range vars {
		x := given[v].v
		if got[v] == nil {
			t.Fatalf("variable %s has no update", g.Op(v).Name)
		}
		for k := range x {
			at := x[k]
			differences := func(h float64) float64 {
				x[k] = at + h
				up := loss()
				x[k] = at - h
				down := loss()
				x[k] = at
				return (up - down) / (2 * h)
			}
			want := differences(1e-6)
			bent := math.Abs(differences(1e-5) - want) // how far the loss is from a line or a parabola here
			if math.Abs(got[v][k]-want) > 1e-4*(1+math.Abs(want))+bent {
				t.Fatalf("variable %s, element %d: gradient %g, differences give %g\n%s", g.Op(v).Name, k, got[v][k], want, text(d, 0))
			}
		}
	}
}

func configs() []train.Config {
	return []train.Config{{}, {GateGradients: true}, {StaticShapes: true}, {AllGradients: true, GateGradients: true}}
}

// TestGradientsOfKinds differentiates each kind alone, with operands that
// broadcast and operands that do not.
func TestGradientsOfKinds(t *testing.T) {
	for _, kind := range []graph.Kind{"Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow", "SquaredDifference"} {
		for _, second := range []graph.Shape{{2, 3}, {3}, {2, 1}, {}} {
			n := newNet(string(kind))
			a, b := n.variable("a", 2, 3), n.variable("b", second...)
			n.op("Sum", []graph.TensorID{n.op(kind, []graph.TensorID{a, b}, f32(2, 3)), n.op("Const", nil, i32(2))}, f32())
			g := n.build(t)
			for k, cfg := range configs() {
				checkGradients(t, g, cfg, uint64(k))
			}
		}
	}
	for _, kind := range []graph.Kind{"Neg", "Exp", "Log", "Tanh", "Sigmoid", "Relu", "Square", "Sqrt", "Rsqrt", "Reciprocal", "Abs", "Sin", "Cos", "Erf", "Softplus", "Softmax", "Identity"} {
		n := newNet(string(kind))
		w := n.variable("w", 2, 3)
		y := n.op(kind, []graph.TensorID{w}, f32(2, 3))
		n.op("Mean", []graph.TensorID{n.op("Mul", []graph.TensorID{y, n.op("Placeholder", nil, f32(2, 3))}, f32(2, 3)), n.op("Const", nil, i32(2))}, f32())
		g := n.build(t)
		for k, cfg := range configs() {
			checkGradients(t, g, cfg, uint64(k))
		}
	}
}

// TestGradientsOfModels differentiates a perceptron, an unrolled recurrent net
// with an embedding, one whose table is also read as a whole, and rows of a
// computed table, summed by segment, of which the largest count.
func TestGradientsOfModels(t *testing.T) {
	for _, g := range []*graph.Graph{mlp(t), recurrent(t, 4), tied(t), computedTable(t)} {
		for k, cfg := range configs() {
			checkGradients(t, g, cfg, uint64(k))
		}
	}
}

// recurrent is an unrolled net: h = tanh(concat(embedding[ids], h) w + b).
func recurrent(t testing.TB, steps int) *graph.Graph {
	n := newNet("recurrent")
	e, w, b := n.variable("e", 5, 3), n.variable("w", 7, 4), n.variable("b", 4)
	h := n.op("Const", nil, f32(2, 4))
	axis := n.op("Const", nil, i32())
	for range steps {
		x := n.op("GatherV2", []graph.TensorID{e, n.op("Placeholder", nil, i32(2)), axis}, f32(2, 3))
		z := n.matMul(n.op("ConcatV2", []graph.TensorID{x, h, axis}, f32(2, 7)), w)
		z = n.op("BiasAdd", []graph.TensorID{z, b}, f32(2, 4))
		halves := n.op("Split", []graph.TensorID{axis, z}, f32(2, 2), f32(2, 2))
		h = n.op("ConcatV2", []graph.TensorID{n.op("Tanh", []graph.TensorID{halves}, f32(2, 2)), n.op("Sigmoid", []graph.TensorID{halves + 1}, f32(2, 2)), axis}, f32(2, 4))
	}
	n.op("Mean", []graph.TensorID{h, n.op("Const", nil, i32(2))}, f32())
	return n.build(t)
}

// tied reads its embedding by rows and, transposed, as the output layer.
func tied(t testing.TB) *graph.Graph {
	n := newNet("tied")
	e := n.variable("e", 5, 3)
	x := n.op("GatherV2", []graph.TensorID{e, n.op("Placeholder", nil, i32(2)), n.op("Const", nil, i32())}, f32(2, 3))
	y := n.matMul(x, n.op("Transpose", []graph.TensorID{e, n.op("Const", nil, i32(2))}, f32(3, 5)))
	loss := n.op("SparseSoftmaxCrossEntropyWithLogits", []graph.TensorID{y, n.op("Placeholder", nil, i32(2))}, f32(2), f32(2, 5))
	n.op("Mean", []graph.TensorID{loss, n.op("Const", nil, i32(1))}, f32())
	return n.build(t)
}

// computedTable gathers rows of tanh(e), whose gradient must be dense.
func computedTable(t testing.TB) *graph.Graph {
	n := newNet("computed")
	axis := n.op("Const", nil, i32())
	e := n.op("Tanh", []graph.TensorID{n.variable("e", 5, 3)}, f32(5, 3))
	x := n.op("GatherV2", []graph.TensorID{e, n.op("Placeholder", nil, i32(4)), axis}, f32(4, 3))
	x = n.op("UnsortedSegmentSum", []graph.TensorID{x, n.op("Placeholder", nil, i32(4)), axis}, f32(3, 3))
	x = n.op("Mul", []graph.TensorID{x, n.op("Fill", []graph.TensorID{axis, n.variable("c")}, f32(3, 3))}, f32(3, 3))
	n.op("Mean", []graph.TensorID{n.op("Max", []graph.TensorID{x, n.op("Const", nil, i32(1))}, f32(3)), n.op("Const", nil, i32(1))}, f32())
	return n.build(t)
}

// TestGradientsOfRandomGraphs is the oracle on random graphs of [2,3] tensors.
func TestGradientsOfRandomGraphs(t *testing.T) {
	unary := []graph.Kind{"Tanh", "Sigmoid", "Softmax", "Sin", "Softplus", "Identity", "Neg", "Erf"}
	binary := []graph.Kind{"Add", "Sub", "Mul", "Maximum", "SquaredDifference"}
	rapid.Check(t, func(rt *rapid.T) {
		n := newNet("random")
		axis := n.op("Const", nil, i32())
		w, b, x := n.variable("w", 3, 3), n.variable("b", 3), n.op("Placeholder", nil, f32(2, 3))
		all := []graph.TensorID{n.op("BiasAdd", []graph.TensorID{n.matMul(x, w), b}, f32(2, 3))}
		pick := func() graph.TensorID { return all[rapid.IntRange(0, len(all)-1).Draw(rt, "from")] }
		for range rapid.IntRange(1, 8).Draw(rt, "ops") {
			var y graph.TensorID
			switch rapid.IntRange(0, 5).Draw(rt, "sort") {
			case 0:
				y = n.op(rapid.SampledFrom(unary).Draw(rt, "kind"), []graph.TensorID{pick()}, f32(2, 3))
			case 1, 2:
				y = n.op(rapid.SampledFrom(binary).Draw(rt, "kind"), []graph.TensorID{pick(), pick()}, f32(2, 3))
			case 3:
				y = n.matMul(n.op("Tanh", []graph.TensorID{pick()}, f32(2, 3)), w)
			case 4:
				c := n.op("ConcatV2", []graph.TensorID{pick(), pick(), axis}, f32(2, 6))
				y = n.op("Split", []graph.TensorID{axis, c}, f32(2, 3), f32(2, 3)) + graph.TensorID(rapid.IntRange(0, 1).Draw(rt, "half"))
			case 5:
				p := n.op("Pack", []graph.TensorID{pick(), pick()}, f32(2, 2, 3))
				y = n.op("Unpack", []graph.TensorID{p}, f32(2, 3), f32(2, 3))
				y = n.op("Mul", []graph.TensorID{y, n.op("Reshape", []graph.TensorID{b, axis}, f32(1, 3))}, f32(2, 3))
			}
			all = append(all, y)
		}
		last := n.op("AddN", all, f32(2, 3))
		n.op("Mean", []graph.TensorID{last, n.op("Const", nil, i32(2))}, f32())
		g, err := n.Build()
		if err != nil {
			rt.Fatal(err)
		}
		cfg := train.Config{StaticShapes: rapid.Bool().Draw(rt, "static"), GateGradients: rapid.Bool().Draw(rt, "gate"), AllGradients: rapid.Bool().Draw(rt, "all")}
		checkGradients(rt, g, cfg, rapid.Uint64().Draw(rt, "seed"))
	})
}
