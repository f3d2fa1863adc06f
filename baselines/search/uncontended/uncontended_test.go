package uncontended_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/search/uncontended"
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// costs are times by device and op.
type costs [][]float64

func (c costs) OpSeconds(i graph.OpID, d int) units.Seconds { return units.Seconds(c[d][i]) }

// problem is n random ops with several outputs, control edges and groups on d
// devices joined through a hub, or by links of their own.
func problem(rng *rand.Rand, n, d int, hub bool) (*plan.Problem, error) {
	b := graph.NewBuilder("random")
	outs := 0
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Kind: "Einsum", Forward: graph.None}
		if rng.IntN(4) == 0 {
			o.Group = 1 + rng.Int32N(3)
		}
		var in []graph.TensorID
		for range rng.IntN(4) {
			if outs > 0 {
				in = append(in, graph.TensorID(rng.IntN(outs)))
			}
		}
		var ts []graph.Tensor
		for range 1 + rng.IntN(2) {
			ts = append(ts, graph.Tensor{Bytes: units.Bytes(rng.IntN(5))})
			outs++
		}
		id := b.Op(o, in, ts...)
		if i > 0 && rng.IntN(5) == 0 {
			b.Control(graph.OpID(rng.IntN(i)), id)
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	device := hw.Device{Name: "gpu:", Model: "m", Kind: hw.GPU, Memory: 1 << 40, MemoryBandwidth: 1, Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1}
	m, err := hw.Star("star", "test", []hw.Spokes{{Device: device, Count: d}}, 1, 0.25)
	if err != nil {
		return nil, err
	}
	if !hub {
		for l := range m.Links {
			m.Links[l].Bandwidth = units.BytesPerSecond(1 + rng.IntN(3))
		}
	}
	var c costs
	for range d {
		column := make([]float64, n)
		for i := range column {
			column[i] = float64(1 + rng.IntN(4))
		}
		c = append(c, column)
	}
	s, err := sim.New(g, m, c, sim.Config{Memory: true, Contention: sim.Uncontended})
	if err != nil {
		return nil, err
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		return nil, err
	}
	return &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Seed: 1}, nil
}

// TestClockIsTheSimulator: bit for bit, ties and all.
func TestClockIsTheSimulator(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p, err := problem(rng, 2+rng.IntN(30), 1+rng.IntN(5), seed%2 == 0)
		if err != nil {
			t.Fatal(err)
		}
		c := uncontended.NewClock(p)
		device := make([]uint8, p.Graph.NumOps())
		for range 3 {
			for i := range device {
				device[i] = uint8(rng.IntN(p.Machine.NumDevices()))
			}
			if got, want := c.Seconds(t.Context(), device), p.Evaluator.Evaluate(plan.Decision{Device: device}).Value; got != want {
				t.Fatalf("seed %d: %v s, the simulator says %v", seed, got, want)
			}
		}
	}
}

// TestAgainstExhaustiveSearch: the best placement of up to 8 ops under first come
// first served.
func TestAgainstExhaustiveSearch(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p, err := problem(rng, 2+rng.IntN(6), 2+rng.IntN(2), true)
		if err != nil {
			t.Fatal(err)
		}
		n, d := p.Graph.NumOps(), p.Machine.NumDevices()
		best := math.Inf(1)
		device := make([]uint8, n)
		for k := 0; k < int(math.Pow(float64(d), float64(n))); k++ {
			for i, x := 0, k; i < n; i, x = i+1, x/d {
				device[i] = uint8(x % d)
			}
			if (&plan.Plan{Decision: plan.Decision{Device: device}}).Check(p.Graph, p.Machine) == nil {
				best = min(best, p.Evaluator.Evaluate(plan.Decision{Device: device}).Value)
			}
		}
		c := uncontended.Default()
		c.Steps, c.Hot, c.Cold = 30_000, 0.5, 1e-2 // of few ops each move is a large part
		found, seconds := uncontended.Search(context.Background(), p.Graph, uncontended.NewClock(p), make([]uint8, n), c, nil)
		if err := (&plan.Plan{Decision: plan.Decision{Device: found}}).Check(p.Graph, p.Machine); err != nil {
			t.Fatal(err)
		}
		if seconds != best || p.Evaluator.Evaluate(plan.Decision{Device: found}).Value != seconds {
			t.Errorf("seed %d: %v s, the optimum is %v", seed, seconds, best)
		}
	}
}

func TestSameSeedSamePlacement(t *testing.T) {
	p, err := problem(rand.New(rand.NewPCG(3, 3)), 40, 4, true)
	if err != nil {
		t.Fatal(err)
	}
	c := uncontended.Default()
	c.Steps = 3000
	a, _ := uncontended.Search(context.Background(), p.Graph, uncontended.NewClock(p), make([]uint8, 40), c, nil)
	b, _ := uncontended.Search(context.Background(), p.Graph, uncontended.NewClock(p), make([]uint8, 40), c, nil)
	if !slices.Equal(a, b) {
		t.Error("two runs of one seed differ")
	}
}

func BenchmarkClock(b *testing.B) {
	p, err := problem(rand.New(rand.NewPCG(4, 4)), 200, 4, true)
	if err != nil {
		b.Fatal(err)
	}
	c := uncontended.NewClock(p)
	device := make([]uint8, 200)
	for i := range device {
		device[i] = uint8(i % 4)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Seconds(b.Context(), device)
	}
}

func Example() {
	p, err := problem(rand.New(rand.NewPCG(5, 5)), 24, 3, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := uncontended.Default()
	c.Steps = 5000
	clock := uncontended.NewClock(p)
	start := make([]uint8, 24)
	_, seconds := uncontended.Search(context.Background(), p.Graph, clock, start, c, nil)
	fmt.Printf("on one device %.2f s, on three %.2f s\n", clock.Seconds(context.Background(), start), seconds)
	// Output:
	// on one device 55.00 s, on three 17.50 s
}

// TestFewEvaluations: a round too short for a trial ends with one.
func TestFewEvaluations(t *testing.T) {
	p, err := problem(rand.New(rand.NewPCG(1, 2)), 12, 4, true)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 4; n++ {
		p.Budget = plan.Budget{Evaluations: n}
		out, err := uncontended.Placer{}.Place(t.Context(), p)
		if err != nil || out.Evaluations < min(n, 2) || out.Evaluations > n+1 {
			t.Errorf("%d evaluations: %+v, %v", n, out, err)
		}
	}
}
