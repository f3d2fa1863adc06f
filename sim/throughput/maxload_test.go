package throughput_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/graph/formats/times"
	"placer/plan"
	"placer/sim/throughput"
	"placer/sim/throughput/throughputtest"
)

// TestDefinition holds the evaluator and the judgement against the definition.
func TestDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for range 400 {
		n := 1 + rng.IntN(10)
		s, err := throughputtest.Random(rng, n)
		if err != nil {
			t.Fatal(err)
		}
		e, err := throughput.NewEvaluator(s)
		if err != nil {
			t.Fatal(err)
		}
		x := e.Instance()
		block := make([]uint8, x.NumBlocks())
		for b := range block {
			block[b] = uint8(rng.IntN(x.NumDevices()))
		}
		device := x.Spread(block)
		want, ok := throughputtest.Naive(&s, device)
		j, score := x.Evaluate(block), e.Evaluate(plan.Decision{Device: device})
		if math.Abs(j.Seconds-want) > 1e-9 || math.Abs(score.Value-want) > 1e-9 {
			t.Fatalf("judged %v, evaluated %v, want %v", j.Seconds, score.Value, want)
		}
		if ok != score.Feasible() || ok != (j.Overflow == 0) {
			t.Fatalf("fits: judged %d over, evaluated %v, want %v", j.Overflow, score, ok)
		}
		if ok {
			valid++
		}
	}
	if valid < 100 {
		t.Errorf("only %d placements were valid", valid)
	}
}

// TestBoundIsBelowTheOptimum: the bound never exceeds what exhaustive search
// reaches, and is reached now and then.
func TestBoundIsBelowTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tight, solved, better := 0, 0, 0
	for range 200 {
		n := 2 + rng.IntN(6)
		_, x := throughputtest.Instance(t, rng, n)
		best := throughputtest.Optimum(x, nil)
		if math.IsInf(best, 1) {
			continue
		}
		solved++
		for _, upper := range []float64{best, math.Inf(1)} {
			if bound := x.Bound(t.Context(), upper, math.MaxInt); bound > best*(1+1e-9)+1e-12 {
				t.Fatalf("bound %v above the optimum %v", bound, best)
			} else if bound > best*(1-1e-6) {
				tight++
			}
		}
		low := x.Bound(t.Context(), best, math.MaxInt)
		packed := x.PackingBound(t.Context(), low, best, 50_000)
		if packed < low || packed > best*(1+1e-9)+1e-12 {
			t.Fatalf("packing bound %v, below %v or above the optimum %v", packed, low, best)
		}
		if packed > low*(1+1e-3) {
			better++
		}
	}
	if better < solved/20 {
		t.Errorf("of %d solved the packing bound was better %d times", solved, better)
	}
	if solved < 100 || tight < solved/4 {
		t.Errorf("of %d solved the bound was tight %d times in two tries each", solved, tight)
	}
}

// TestBoundStops: a bound that its context or its effort ends is that of the work where it has
// come to nothing else, and never above the one that is proven with all of it.
func TestBoundStops(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	ended, stop := context.WithCancel(t.Context())
	stop()
	lower, between := 0, 0
	for range 50 {
		_, x := throughputtest.Instance(t, rng, 8)
		whole := x.Bound(t.Context(), math.Inf(1), math.MaxInt)
		work := x.Bound(t.Context(), math.Inf(1), 1)
		if got := x.Bound(ended, math.Inf(1), math.MaxInt); got != work || work > whole {
			t.Errorf("stopped at %v, with no effort at %v, to the end %v", got, work, whole)
		}
		if got := x.PackingBound(ended, work, 4*whole, 50_000); got != work {
			t.Errorf("the packing bound of a context that has ended is %v, want %v", got, work)
		}
		if work < whole*(1-1e-6) {
			lower++
		}
		before := work
		for effort := 1; before < whole && effort < 1<<20; effort *= 4 {
			got := x.Bound(t.Context(), math.Inf(1), effort)
			if got < before || got > whole {
				t.Errorf("%v with effort %d, %v with less", got, effort, before)
			}
			if got > work && got < whole {
				between++
			}
			before = got
		}
	}
	if lower < 10 || between < 10 {
		t.Errorf("of 50 bounds %d were lower without effort, %d were between", lower, between)
	}
}

// TestBoundWithTwoCPUs: a tensor between two CPUs costs nobody anything, so a bound does not
// count it. Two ops of 10 s whose tensor takes 5 s run on the CPUs, a third on the accelerator.
func TestBoundWithTwoCPUs(t *testing.T) {
	b := graph.NewBuilder("two CPUs")
	for k, in := range [][]graph.TensorID{nil, {0}, nil} {
		b.Op(graph.Op{Name: fmt.Sprint("op", k), Kind: "Layer", Forward: graph.None, Resident: 1}, in, graph.Tensor{Bytes: 8, Resident: true})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	seconds := []float64{10, 10, 10}
	table := &times.Table{GraphHash: g.Hash(), Source: "a test", Bandwidth: 1, Transfer: []float64{5, 0, 0}, Models: []times.Model{
		{Name: "a", Count: 1, Memory: 1 << 40, Seconds: seconds}, {Name: "c", CPU: true, Count: 2, Memory: 1 << 40, Seconds: seconds}}}
	m, err := table.Machine()
	if err != nil {
		t.Fatal(err)
	}
	s, err := throughput.FromTable(g, m, table)
	if err != nil {
		t.Fatal(err)
	}
	e, err := throughput.NewEvaluator(s)
	if err != nil {
		t.Fatal(err)
	}
	x := e.Instance()
	if best, bound := throughputtest.Optimum(x, nil), x.Bound(t.Context(), math.Inf(1), math.MaxInt); best != 10 || bound > best*(1+1e-9) {
		t.Errorf("the best load is %v, bounded by %v", best, bound)
	}
}
