package contiguous_test

import (
	"context"
	"math"
	"os"
	"testing"

	"placer/baselines/partition/balance"
	"placer/baselines/partition/contiguous"
	"placer/graph/formats/dnnpart"
	"placer/sim/throughput"
	"placer/sim/throughput/throughputtest"
)

// TestBERT24 is one row of the published instances: the reference solver's
// optimum of 41.7458125 ms, the experts' 49.4049 ms, and a split of any shape
// below both.
func TestBERT24(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile("../../../graph/formats/dnnpart/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	x, err := dnnpart.Import(read("bert24_training.json"), "bert24_training.json")
	if err != nil {
		t.Fatal(err)
	}
	s := throughputtest.Source(t, x.Instance)
	y, err := throughput.New(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := contiguous.Solve(context.Background(), s, contiguous.Default())
	if err != nil {
		t.Fatal(err)
	}
	if got := 1e3 * y.Evaluate(y.Gather(r.Device)).Seconds; !r.Optimal || math.Abs(got-41.7458125) > 1e-6 {
		t.Errorf("contiguous: %v ms, optimal %v", got, r.Optimal)
	}
	chain := s
	chain.Part = contiguous.Layers(s)
	p, err := contiguous.Solve(context.Background(), chain, contiguous.Config{Linear: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := 1e3 * y.Evaluate(y.Gather(p.Device)).Seconds; math.Abs(got-187.914) > 1e-3 {
		t.Errorf("biconnected components as layers: %v ms", got)
	}
	e, err := x.ReadSplit(read("bert24_training_expert.json"), "bert24_training_expert.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := 1e3 * y.Evaluate(y.Gather(e.Device)).Seconds; math.Abs(got-49.4049) > 1e-4 {
		t.Errorf("expert: %v ms", got)
	}
	c := balance.Default()
	c.Moves = 200_000
	block, _ := balance.Search(context.Background(), y, y.Gather(r.Device), c, nil)
	j := y.Evaluate(block)
	if got := 1e3 * j.Seconds; got > 39.94 || j.Overflow > 0 || got < 1e3*y.Bound(t.Context(), j.Seconds, math.MaxInt) {
		t.Errorf("any shape: %v ms, bound %v", got, 1e3*y.Bound(t.Context(), j.Seconds, math.MaxInt))
	}
}
