package exact

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/sim/throughput"
	"placer/units"
)

// pairs holds every contention, objective and scheduler against trying everything,
// on problems of 3 to most ops: what is called optimal is, no bound is above the
// optimum, and where the event loop follows the evaluator's rules all is proven.
func pairs(t *testing.T, cases, most int) {
	for contention := sim.FIFO; contention <= sim.Uncontended; contention++ {
		for _, objective := range []plan.Objective{plan.Step, plan.Throughput, plan.Memory} {
			for _, scheduler := range []string{"critical-path", "fifo"} {
				t.Run(fmt.Sprintf("%s/%s/%s", contention, objective, scheduler), func(t *testing.T) {
					proven := 0
					for seed := range cases {
						rng := rand.New(rand.NewPCG(uint64(seed), 23))
						n := 3 + seed%(most-2)
						d := 2
						if n <= 4 {
							d += seed % 2
						}
						p := random(t, rng, n, d, sim.Config{Memory: seed%3 != 0 || objective == plan.Memory, Contention: contention})
						if scheduler == "fifo" {
							p.Priority = nil
						}
						judge(t, p, objective)
						for _, solve := range []func(context.Context, *plan.Problem) (*plan.Outcome, *Proof, error){Exact{}.Solve, CPSAT{}.Solve} {
							if holds(t, seed, p, solve) {
								proven++
							}
						}
						if t.Failed() {
							return
						}
					}
					if own := objective != plan.Step || contention != sim.FairShare; own && proven < cases {
						t.Errorf("%d proven in %d cases, too few for a test", proven, cases)
					}
				})
			}
		}
	}
}

// judge puts the evaluator of objective in place of p's simulator.
func judge(t *testing.T, p *plan.Problem, objective plan.Objective) {
	p.Objective = objective
	switch s := p.Evaluator.(*sim.Simulator); objective {
	case plan.Memory:
		p.Evaluator = sim.NewPeak(s)
	case plan.Throughput:
		source := throughput.Source{Graph: p.Graph, Machine: p.Machine}
		for d := range p.Machine.NumDevices() {
			source.Seconds = append(source.Seconds, s.OpSeconds(d))
		}
		e, err := throughput.NewEvaluator(source)
		if err != nil {
			t.Fatal(err)
		}
		p.Evaluator = e
	}
}

// holds checks what solve says of p, and reports whether it has a proof.
func holds(t *testing.T, seed int, p *plan.Problem, solve func(context.Context, *plan.Problem) (*plan.Outcome, *Proof, error)) bool {
	orders := [][]int32{p.Priority}
	if p.Objective == plan.Step {
		orders = append(orders, permutations(p.Graph.NumOps())...)
	}
	optimum := math.Inf(1)
	if s := bruteUnder(p, orders); s.Feasible() {
		optimum = s.Value
	}
	out, proof, err := solve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	reached := math.Inf(1)
	if out.Score.Feasible() {
		reached = out.Score.Value
	}
	if proof.Bound > optimum*(1+1e-9) || proof.Impossible && !math.IsInf(optimum, 1) {
		t.Errorf("seed %d: bound %g, impossible %v, the optimum is %g", seed, proof.Bound, proof.Impossible, optimum)
	}
	if proof.Optimal != strings.HasPrefix(out.Notes[0], "OPTIMAL") || proof.Optimal && !(math.Abs(reached-optimum) <= 2e-6*optimum) {
		t.Errorf("seed %d: %q of %g, the optimum is %g", seed, out.Notes, reached, optimum)
	}
	return proof.Optimal || proof.Impossible
}

// TestEveryPair is a sample of TestEveryPairLong.
func TestEveryPair(t *testing.T) { pairs(t, 12, 5) }

// TestCopiesThatOccupyTheSender: the event loop does not follow them, and claims
// nothing that is not so.
func TestCopiesThatOccupyTheSender(t *testing.T) {
	for seed := range 60 {
		q := random(t, rand.New(rand.NewPCG(uint64(seed), 24)), 3+seed%3, 2, sim.Config{})
		c := make(costs, 2)
		for d := range c {
			for _, s := range q.Evaluator.OpSeconds(d) {
				c[d] = append(c[d], s*1e6)
			}
		}
		for l := range q.Machine.Links {
			q.Machine.Links[l].EndCosts = hw.EndCosts{Occupies: hw.Sender, Delivery: 2e-6, Receive: units.Seconds(seed%2) * 1e-6}
		}
		s, err := sim.New(q.Graph, q.Machine, c, sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		q.Evaluator, q.Objective = s, plan.Step
		holds(t, seed, q, Exact{}.Solve)
	}
}

// TestWithoutQueues: six sources whose tensors cross to one sink at once, which a
// link that serves one at a time would hold up.
func TestWithoutQueues(t *testing.T) {
	b := graph.NewBuilder("sources")
	var in []graph.TensorID
	c := make(costs, 2)
	for i, s := range []float64{1, 1, 3, 4, 2, 5} {
		id := b.Op(graph.Op{Name: fmt.Sprint(i), Kind: "MatMul", Forward: graph.None}, nil, graph.Tensor{Bytes: units.Bytes([]float64{8, 4, 26, 34, 10, 24}[i] * 1e9)})
		in = append(in, b.Output(id, 0))
		c[0] = append(c[0], s*1e6)
	}
	b.Op(graph.Op{Name: "sink", Kind: "MatMul", Forward: graph.None}, in)
	c[0] = append(c[0], 1e6)
	c[1] = c[0]
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := &hw.Machine{Name: "two", Routes: [][]int32{nil, {0}, {1}, nil}}
	for d := range 2 {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint(d), Model: "m", Kind: hw.GPU, Memory: 1 << 40, MemoryBandwidth: 1, Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1})
		m.Links = append(m.Links, hw.Link{Name: fmt.Sprint(d), Bandwidth: 1e9, Latency: 1e-5})
	}
	s, err := sim.New(g, m, c, sim.Config{Contention: sim.Uncontended})
	if err != nil {
		t.Fatal(err)
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	out, proof, err := Exact{}.Solve(context.Background(), &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s})
	if err != nil {
		t.Fatal(err)
	}
	// One device runs 3, 4 and 5 s and the sink; 2, 1 and 1 s elsewhere arrive meanwhile.
	if want := 13.00001; !proof.Optimal || math.Abs(out.Score.Value-want) > 1e-9 {
		t.Errorf("%.6f s, %q, want OPTIMAL %g", out.Score.Value, out.Notes, want)
	}
}
