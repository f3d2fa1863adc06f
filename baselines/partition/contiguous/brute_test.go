package contiguous

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/times"
	"placer/hw"
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

// chainOn returns a chain of n ops on n devices that all differ: the k-th op takes a second
// on the k-th, and ten elsewhere.
func chainOn(t *testing.T, n int) throughput.Source {
	t.Helper()
	b := graph.NewBuilder("a chain")
	s := throughput.Source{Machine: &hw.Machine{Name: "a test"}}
	for k := range n {
		var in []graph.TensorID
		if k > 0 {
			in = []graph.TensorID{graph.TensorID(k - 1)}
		}
		b.Op(graph.Op{Name: fmt.Sprint("op", k), Kind: "Layer", Forward: graph.None, Resident: 1}, in, graph.Tensor{Bytes: 8, Resident: true})
		seconds := slices.Repeat([]float64{10}, n)
		seconds[k] = 1
		s.Seconds, s.Transfer = append(s.Seconds, seconds), append(s.Transfer, 0.01)
		s.Machine.Devices = append(s.Machine.Devices, hw.Device{Name: fmt.Sprint("gpu:", k), Kind: hw.GPU, Memory: 1 << 40})
	}
	var err error
	if s.Graph, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestManyKinds: twelve devices that all differ are told apart, more are an error that
// says what the limit is of.
func TestManyKinds(t *testing.T) {
	for _, n := range []int{2, 8, 9, 12} {
		r, err := Solve(t.Context(), chainOn(t, n), Default())
		if err != nil || !r.Optimal || r.Seconds > 1.03 {
			t.Errorf("%d kinds: %+v, %v: want one op on each device", n, r, err)
		}
	}
	if _, err := Solve(t.Context(), chainOn(t, 13), Default()); err == nil || !strings.Contains(err.Error(), "13 devices of 13 kinds can be in use in more than 4096 ways") {
		t.Errorf("13 kinds: %v", err)
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
