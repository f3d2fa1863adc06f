package listsched

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// opProblem decides on ops: no units, whatever the graph.
func opProblem(t *testing.T, g *graph.Graph, c conformance.Case, micros ...float64) *plan.Problem {
	t.Helper()
	c.Graph, c.Costs = g, conformance.Costs{Micros: micros, Uniform: true}
	h, ops := &unit.Hierarchy{}, &unit.Partition{}
	for i := range g.NumOps() {
		ops.Of = append(ops.Of, int32(i))
		ops.Ops = append(ops.Ops, []graph.OpID{graph.OpID(i)})
	}
	for l := range h.Levels {
		h.Levels[l] = ops
	}
	c.Levels = h
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func place(t *testing.T, m plan.Placer, p *plan.Problem) *plan.Outcome {
	t.Helper()
	out, err := m.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func build(t *testing.T, f func(b *graph.Builder)) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("case")
	f(b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func op(b *graph.Builder, name string, resident units.Bytes, in []graph.TensorID, out ...units.Bytes) graph.OpID {
	var outs []graph.Tensor
	for _, x := range out {
		outs = append(outs, graph.Tensor{Bytes: x})
	}
	return b.Op(graph.Op{Name: name, Kind: "MatMul", Resident: resident, Forward: graph.None}, in, outs...)
}

// TestTopo: six ops of 10 bytes on three devices. The limit is 60/3 + 10, so that
// the first two devices get three ops each and the last none.
func TestTopo(t *testing.T) {
	g := build(t, func(b *graph.Builder) {
		for k := range 6 {
			op(b, fmt.Sprint(k), 10, nil)
		}
	})
	out := place(t, MTOPO(), opProblem(t, g, conformance.Cases()[2], 1, 1, 1, 1, 1, 1))
	if want := []uint8{0, 0, 0, 1, 1, 1}; !slices.Equal(out.Device, want) {
		t.Errorf("devices %v, want %v", out.Device, want)
	}
}

// TestFavourite: x's second reader comes first to m-ETF, because it alone is
// ready at once, and takes x's device for long; its first reader, for which
// x's large tensor is meant, also waits for a short y. m-SCT keeps the device free
// for it.
func TestFavourite(t *testing.T) {
	g := build(t, func(b *graph.Builder) {
		x := op(b, "x", 0, nil, 100_000) // 100 us to move
		y := op(b, "y", 0, nil, 1000)    // 2 us to move
		op(b, "favourite", 0, []graph.TensorID{b.Output(x, 0), b.Output(y, 0)})
		z := op(b, "z", 0, nil, 1000)
		op(b, "other", 0, []graph.TensorID{b.Output(z, 0)})
	})
	// x 50 and y 52 run side by side; z follows x, which leaves the favourite at 54.
	p := opProblem(t, g, conformance.Cases()[8], 50, 52, 100, 1, 60)
	etf, sct := place(t, METF(), p), place(t, MSCT(), p)
	if etf.Device[0] != sct.Device[0] {
		t.Fatalf("x is on devices %d and %d", etf.Device[0], sct.Device[0])
	}
	if sct.Device[2] != sct.Device[0] {
		t.Errorf("m-SCT: favourite on device %d, its parent on %d", sct.Device[2], sct.Device[0])
	}
	if sct.Score.Value > etf.Score.Value {
		t.Errorf("m-SCT takes %g, m-ETF %g", sct.Score.Value, etf.Score.Value)
	}
	m, err := newModel(p)
	if err != nil {
		t.Fatal(err)
	}
	if f := m.favourites(context.Background()); f.child[0] < 0 && f.child[1] < 0 {
		t.Errorf("favourites %v, want one of x or y to have one", f.child)
	}
}

// TestMemory: all three find placements that fit where memory is tight, and hold
// co-location groups together.
func TestMemory(t *testing.T) {
	for _, k := range []int{4, 9} { // groups, more than one device holds
		c := conformance.Cases()[k]
		for _, a := range []plan.Placer{MTOPO(), METF(), MSCT()} {
			p, err := c.Problem()
			if err != nil {
				t.Fatal(err)
			}
			out := place(t, a, p)
			if !out.Score.Feasible() {
				t.Errorf("%s on %s: %d bytes too many", a.Name(), c.Name, out.Score.Overflow)
			}
			if err := (&plan.Plan{Decision: plan.Decision{Device: out.Device}}).Check(c.Graph, c.Machine); err != nil {
				t.Errorf("%s on %s: %v", a.Name(), c.Name, err)
			}
		}
	}
}

func Example_baechi() {
	c := conformance.Cases()[8] // a training step on two devices
	for _, a := range []plan.Placer{MTOPO(), METF(), MSCT()} {
		p, err := c.Problem()
		if err != nil {
			panic(err)
		}
		out, err := a.Place(context.Background(), p)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-6s %.0f us\n", a.Name(), 1e6*out.Score.Value)
	}
	// Output:
	// m-topo 394 us
	// m-etf  490 us
	// m-sct  490 us
}
