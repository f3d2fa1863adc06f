package verdict_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/placer/verdict"
	"placer/plan"
	"placer/units"
)

// randomSource is a graph of a dozen ops with times of their own, 1 to 9 ms, and
// tensors of up to 9 MB.
func randomSource(seed uint64) problem.Source {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := graph.NewBuilder(fmt.Sprint("random", seed))
	n := 4 + rng.IntN(7)
	var seconds []units.Seconds
	var made []graph.TensorID
	for i := range n {
		var in []graph.TensorID
		for range rng.IntN(3) {
			if len(made) > 0 {
				in = append(in, made[rng.IntN(len(made))])
			}
		}
		slices.Sort(in)
		op := b.Op(graph.Op{Name: fmt.Sprint("op", i), Kind: "MatMul", Bytes: graph.Auto, Forward: graph.None}, slices.Compact(in), graph.Tensor{Bytes: units.Bytes(1+rng.IntN(9)) * 1_000_000})
		made = append(made, b.Output(op, 0))
		seconds = append(seconds, units.Seconds(1+rng.IntN(9))*1e-3)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return problem.Source{Graph: g, Seconds: seconds}
}

// star has n equal GPUs on a switch.
func star(n int, bandwidth units.BytesPerSecond, memory units.Bytes) *hw.Machine {
	m, err := hw.Star("star", "a test", []hw.Spokes{{Device: hw.Device{Name: "gpu:", Model: "x", Kind: hw.GPU, Memory: memory, MemoryBandwidth: 1e12, Peak: map[string]units.FLOPsPerSecond{"f32": 1e13}, SMs: 1}, Count: n}}, bandwidth, 5e-6)
	if err != nil {
		panic(err)
	}
	return m
}

// sweep answers within so many evaluations a count.
func sweep(t *testing.T, s problem.Source, c verdict.Config, ms ...*hw.Machine) []verdict.Answer {
	t.Helper()
	var judged []verdict.Machine
	for _, m := range ms {
		judged = append(judged, verdict.Machine{Machine: m, Error: verdict.ErrorOf(s, m)})
	}
	still := func() float64 { return 0 }
	if c.Methods == nil {
		c.Methods = []string{"single", "human", "anneal", "exact"}
	}
	c.Seed, c.Workers = 1, 1
	answers, left, err := verdict.Sweep(context.Background(), s, judged, c, verdict.Host{Host: search.Host{Clock: still, CPU: still}})
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	return answers
}

// rounding is what sums of the same times in another order may differ by, relatively.
const rounding = 1e-12

// TestMoreIsNeverWorse: on random graphs no answer is worse than one with fewer
// devices, slower links or less budget. Of devices and budget that is so by
// construction; of links it is not, as one plan may take longer on faster links (list
// scheduling has anomalies), but no search here comes to a worse one.
func TestMoreIsNeverWorse(t *testing.T) {
	for seed := range uint64(randomGraphs) {
		s := randomSource(seed)
		slow, fast := star(3, 1e9, 1e9), star(3, 4e9, 1e9)
		small := plan.Budget{Evaluations: 200}
		base := sweep(t, s, verdict.Config{Budget: small}, slow)
		for n := 1; n < len(base); n++ {
			if base[n].Score.Value > base[n-1].Score.Value {
				t.Errorf("graph %d: %d devices take %g s, %d take %g s", seed, n+1, base[n].Score.Value, n, base[n-1].Score.Value)
			}
		}
		// The answer for fewer devices does not depend on how many there are.
		two := sweep(t, s, verdict.Config{Budget: small}, star(2, 1e9, 1e9))
		for n := range two {
			if two[n].Score != base[n].Score {
				t.Errorf("graph %d: %d of 2 devices take %g s, of 3 %g s", seed, n+1, two[n].Score.Value, base[n].Score.Value)
			}
		}
		more := sweep(t, s, verdict.Config{Budget: plan.Budget{Evaluations: 800}}, slow)
		faster := sweep(t, s, verdict.Config{Budget: small}, fast)
		for n := range base {
			if more[n].Score.Value > base[n].Score.Value {
				t.Errorf("graph %d: with four times the budget %d devices take %g s, without %g s", seed, n+1, more[n].Score.Value, base[n].Score.Value)
			}
			if faster[n].Score.Value > base[n].Score.Value*(1+rounding) {
				t.Errorf("graph %d: with four times the bandwidth %d devices take %g s, without %g s", seed, n+1, faster[n].Score.Value, base[n].Score.Value)
			}
		}
	}
}
