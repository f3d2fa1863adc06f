package unit

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
)

func find(t testing.TB, g *graph.Graph) *Hierarchy {
	t.Helper()
	h, err := Find(g, ones(g))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(g); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRecurrentUnits(t *testing.T) {
	const layers, steps = 3, 20
	for _, c := range []struct {
		name  string
		train bool
		// Cells: one a layer and step and direction, one a variable, one for the loss
		// in each direction. The sum that is the loss joins the last step where it is
		// light; its gradient joins what it joined.
		cells, chains int
	}{
		{"inference", false, layers*steps + layers + 1, 2*layers + 1},
		{"training", true, 2*layers*steps + layers + 2, 3*layers + 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, weights, products := recurrent(layers, steps, c.train)
			h := find(t, g)
			if n := h.Levels[Cell].NumUnits(); n > c.cells || n < c.cells-2 {
				t.Errorf("%d cells, want %d or up to 2 fewer", n, c.cells)
			}
			if n := h.Levels[Chain].NumUnits(); n > c.chains || n < c.chains-2 {
				t.Errorf("%d chains, want %d or up to 2 fewer", n, c.chains)
			}
			cell, chain := h.Levels[Cell].Of, h.Levels[Chain].Of
			seen := map[int32]bool{}
			for l, ps := range products {
				for _, p := range ps {
					if chain[p] != chain[ps[0]] {
						t.Errorf("layer %d: steps lie in chains %d and %d", l, chain[ps[0]], chain[p])
					}
					if seen[cell[p]] {
						t.Errorf("layer %d: two steps share cell %d", l, cell[p])
					}
					seen[cell[p]] = true
					if r := h.Reads[Cell][cell[p]]; len(r) != 1 || r[0] != cell[weights[l]] {
						t.Errorf("layer %d: a step reads %v, want cell %d alone", l, r, cell[weights[l]])
					}
					if has := h.Counterparts[Cell][cell[p]] >= 0; has != c.train {
						t.Errorf("layer %d: a step has a counterpart: %v", l, has)
					}
				}
				if h.Roles[Cell][cell[weights[l]]] != Weights {
					t.Errorf("layer %d: the variable's cell is %v", l, h.Roles[Cell][cell[weights[l]]])
				}
			}
		})
	}
}

// The gradient of a variable, over all steps, stays with the variable; the
// gradient of an activation, though it is a product too, does not.
func TestWeightGradientsJoinTheirVariable(t *testing.T) {
	g, weights, products := recurrent(2, 5, true)
	h := find(t, g)
	cell := h.Levels[Cell].Of
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		if o.Phase != graph.Backward || o.Kind != "MatMul" {
			continue
		}
		l := -1
		for k, ps := range products {
			for _, p := range ps {
				if o.Forward == p {
					l = k
				}
			}
		}
		readsWeights := false
		for _, x := range g.Inputs(graph.OpID(i)) {
			readsWeights = readsWeights || g.Op(g.Tensor(x).Producer).Kind == "Identity"
		}
		if together := cell[i] == cell[weights[l]]; together == readsWeights {
			t.Errorf("op %d (%s) of layer %d: reads weights %v, in their cell %v", i, o.Name, l, readsWeights, together)
		}
		if readsWeights && h.Counterparts[Cell][cell[i]] != cell[o.Forward] {
			t.Errorf("op %d (%s): its cell's counterpart is %d, want %d", i, o.Name, h.Counterparts[Cell][cell[i]], cell[o.Forward])
		}
	}
}

// An imported training graph does not name forward ops: the backward pass is cut
// by itself.
func TestBackwardWithoutAnnotations(t *testing.T) {
	b := newBuilder()
	x := b.op("Placeholder", 4096)
	var reads, vars []graph.TensorID
	acts := []graph.TensorID{x}
	for range 6 {
		v, r := b.variable(1 << 20)
		vars, reads = append(vars, v), append(reads, r)
		acts = append(acts, b.op("Relu", 4096, b.op("MatMul", 4096, acts[len(acts)-1], r)))
	}
	b.phase = graph.Backward
	d := b.op("SoftmaxCrossEntropyWithLogits", 4096, acts[6])
	for l := 5; l >= 0; l-- {
		b.phase = graph.Backward
		d = b.op("ReluGrad", 4096, d, acts[l+1])
		dw := b.op("MatMul", 1<<20, acts[l], d)
		if l > 0 {
			d = b.op("MatMul", 4096, d, reads[l])
		}
		b.update(vars[l], dw)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	h := find(t, g)
	var count [3]int
	for _, r := range h.Roles[Cell] {
		count[r]++
	}
	if count[Forward] != 6 || count[Weights] != 6 || count[Backward] < 5 || count[Backward] > 7 {
		t.Errorf("cells by role %v, want 6 forward, 5 to 7 backward, 6 of weights", count)
	}
}

// Branches between a split and a concat are segments; the block is a chain.
func TestBranches(t *testing.T) {
	b := newBuilder()
	x := b.op("Placeholder", 1<<16)
	conv := func(x graph.TensorID) graph.TensorID {
		_, w := b.variable(1 << 10)
		return b.op("Relu", 1<<16, b.op("Conv2D", 1<<16, x, w))
	}
	var branch [8][]graph.TensorID
	for k := range branch {
		x = conv(x)
		first := conv(conv(x))
		second := conv(x)
		branch[k] = []graph.TensorID{first, second}
		x = b.op("ConcatV2", 1<<17, first, second)
	}
	names := map[string][2]int{}
	for k := range branch {
		for j, y := range branch[k] {
			names[b.at(y).Name] = [2]int{k, j}
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := make([]float64, g.NumOps())
	for i := range s {
		s[i] = 1e-4
		if g.Op(graph.OpID(i)).Kind == "Conv2D" {
			s[i] = 1e-3
		}
	}
	h, err := Find(g, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(g); err != nil {
		t.Fatal(err)
	}
	var at [8][2]int32
	for i := range g.NumOps() {
		if kj, ok := names[g.Op(graph.OpID(i)).Name]; ok {
			at[kj[0]][kj[1]] = int32(i)
		}
	}
	seg, ch := h.Levels[Segment].Of, h.Levels[Chain].Of
	for k := range at {
		if a, b := at[k][0], at[k][1]; seg[a] == seg[b] || ch[a] != ch[b] {
			t.Errorf("block %d: branches in segments %d and %d, chains %d and %d", k, seg[a], seg[b], ch[a], ch[b])
		}
	}
	if n := h.Levels[Chain].NumUnits(); n < 4 || n > 24 {
		t.Errorf("%d chains", n)
	}
}

func TestFindRefusesTimes(t *testing.T) {
	g, _, _ := recurrent(1, 2, false)
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		s := ones(g)
		s[3] = bad
		if _, err := Find(g, s); err == nil {
			t.Errorf("time %v accepted", bad)
		}
	}
}

// kindsOfAll has one kind of every class.
var kindsOfAll = []graph.Kind{"Placeholder", "VariableV2", "Const", "Identity", "MatMul", "Conv2D", "Add", "Sum", "ConcatV2", "GatherV2", "MaxPool", "ApplyAdam", "NoOp", "Unheard"}

// randomGraph draws a graph with no sense in it: any kinds, phases, groups,
// forward ops and control dependencies.
func randomGraph(t *rapid.T) *graph.Graph {
	b := graph.NewBuilder("random")
	n := rapid.IntRange(1, 40).Draw(t, "n")
	var tensors []graph.TensorID
	for i := range n {
		o := graph.Op{Name: string(rune('a'+i%26)) + string(rune('0'+i/26)), Bytes: graph.Auto, Forward: graph.None}
		o.Kind = rapid.SampledFrom(kindsOfAll).Draw(t, "kind")
		o.Phase = rapid.SampledFrom([]graph.Phase{graph.Forward, graph.Forward, graph.Backward, graph.Update}).Draw(t, "phase")
		o.Group = int32(max(0, rapid.IntRange(-8, 4).Draw(t, "group")))
		if i > 0 && o.Phase == graph.Backward {
			o.Forward = graph.OpID(rapid.IntRange(-1, i-1).Draw(t, "forward"))
		}
		var in []graph.TensorID
		if len(tensors) > 0 {
			in = rapid.SliceOfN(rapid.SampledFrom(tensors), 0, 3).Draw(t, "in")
		}
		outs := make([]graph.Tensor, rapid.IntRange(0, 2).Draw(t, "outputs"))
		for k := range outs {
			outs[k].Bytes = 64
		}
		id := b.Op(o, in, outs...)
		for k := range outs {
			tensors = append(tensors, b.Output(id, k))
		}
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "has control") == 0 {
			b.Control(graph.OpID(rapid.IntRange(0, i-1).Draw(t, "control")), id)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Whatever the graph, units are nested partitions that split no group, and what
// is said of them is consistent.
func TestInvariantsOnRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		seconds := make([]float64, g.NumOps())
		for i := range seconds {
			seconds[i] = float64(rapid.IntRange(0, 9).Draw(t, "seconds"))
		}
		h, err := Find(g, seconds)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Check(g); err != nil {
			t.Fatal(err)
		}
		for l := Cell; l < NumLevels; l++ {
			for u, p := range h.Counterparts[l] {
				if p < 0 {
					continue
				}
				if l == Cell && (h.Counterparts[l][p] != int32(u) || h.Roles[l][u] == h.Roles[l][p]) {
					t.Errorf("level %v: unit %d (%v) has counterpart %d (%v), whose counterpart is %d", l, u, h.Roles[l][u], p, h.Roles[l][p], h.Counterparts[l][p])
				}
			}
			for u, r := range h.Reads[l] {
				for _, v := range r {
					if h.Roles[l][v] != Weights || int(v) == u {
						t.Errorf("level %v: unit %d reads unit %d, which is %v", l, u, v, h.Roles[l][v])
					}
				}
			}
		}
	})
}

func TestFindIsDeterministic(t *testing.T) {
	g, _, _ := recurrent(3, 7, true)
	a, b := find(t, g), find(t, g)
	for l := range a.Levels {
		for i, u := range a.Levels[l].Of {
			if b.Levels[l].Of[i] != u {
				t.Fatalf("level %v: op %d is in units %d and %d", Level(l), i, u, b.Levels[l].Of[i])
			}
		}
	}
}

func BenchmarkFind(b *testing.B) {
	g, _, _ := recurrent(16, 400, true)
	s := ones(g)
	b.ReportMetric(float64(g.NumOps()), "ops")
	for b.Loop() {
		if _, err := Find(g, s); err != nil {
			b.Fatal(err)
		}
	}
}
