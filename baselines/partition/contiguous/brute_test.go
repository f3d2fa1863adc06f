package contiguous

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/graph/formats/times"
	"placer/sim/throughput"
	"placer/sim/throughput/throughputtest"
)

// contiguousSplit reports whether the stages of a placement of x's blocks can be
// put in order: the precedence edges between devices have no cycle.
func contiguousSplit(x *throughput.Instance, edges [][2]int32, block []uint8) bool {
	d := x.NumDevices()
	reach := make([]uint64, d)
	for _, e := range edges {
		if a, b := block[e[0]], block[e[1]]; a != b {
			reach[a] |= 1 << b
		}
	}
	for range d {
		for a := range reach {
			for b := range reach {
				if reach[a]>>b&1 != 0 {
					reach[a] |= reach[b]
				}
			}
		}
	}
	for a := range reach {
		if reach[a]>>a&1 != 0 {
			return false
		}
	}
	return true
}

// TestAgainstExhaustiveSearch: the optimum on graphs of up to 8 ops, with
// colours, backward ops, CPUs and short memory.
func TestAgainstExhaustiveSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	solved, memory := 0, 0
	for k := range 600 {
		s, x := throughputtest.Instance(t, rng, 1+rng.IntN(8))
		edges := precedence(x)
		best := throughputtest.Optimum(x, func(block []uint8) bool { return contiguousSplit(x, edges, block) })
		r, err := Solve(context.Background(), s, Default())
		if errors.Is(err, ErrNothingFits) {
			if !math.IsInf(best, 1) {
				t.Fatalf("case %d: nothing fits, but %v does", k, best)
			}
			memory++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		block := x.Gather(r.Device)
		j := x.Evaluate(block)
		if !r.Optimal || math.Abs(r.Seconds-best) > 1e-9 || math.Abs(j.Seconds-best) > 1e-9 || j.Overflow > 0 || !contiguousSplit(x, edges, block) {
			t.Fatalf("case %d: %v (optimal %v), judged %v with %d bytes too many, want %v", k, r.Seconds, r.Optimal, j.Seconds, j.Overflow, best)
		}
		if l, err := Solve(context.Background(), s, Config{Linear: true}); err == nil && l.Seconds < best-1e-9 {
			t.Fatalf("case %d: a linear split takes %v, the optimum %v", k, l.Seconds, best)
		}
		solved++
	}
	if solved < 300 || memory == 0 {
		t.Errorf("%d solved, %d without a split", solved, memory)
	}
}

func TestStopsWithItsContext(t *testing.T) {
	s, err := throughputtest.Random(rand.New(rand.NewPCG(7, 8)), 8)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Solve(ctx, s, Default()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// TestOpsThatOneKindCannotRun: an op that no accelerator runs leaves their room for the others
// as it is.
func TestOpsThatOneKindCannotRun(t *testing.T) {
	b := graph.NewBuilder("a chain")
	for k, in := range [][]graph.TensorID{nil, {0}, {1}} {
		b.Op(graph.Op{Name: fmt.Sprint("op", k), Kind: "Layer", Forward: graph.None, Resident: 1}, in, graph.Tensor{Bytes: 8, Resident: true})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	table := &times.Table{GraphHash: g.Hash(), Source: "a test", Bandwidth: 1, Transfer: []float64{0.01, 0.01, 0.01}, Models: []times.Model{
		{Name: "a", Count: 2, Memory: 1 << 40, Seconds: []float64{math.Inf(1), 1, 1}}, {Name: "c", CPU: true, Count: 1, Memory: 1 << 40, Seconds: []float64{1, 10, 10}}}}
	m, err := table.Machine()
	if err != nil {
		t.Fatal(err)
	}
	s, err := throughput.FromTable(g, m, table)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Solve(t.Context(), s, Default())
	if err != nil || !r.Optimal || r.Seconds > 1.1 {
		t.Errorf("%+v, %v: want one op on each device", r, err)
	}
}
