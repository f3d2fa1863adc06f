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
	"placer/units"
)

// costs are op times in microseconds, [D][N].
type costs [][]float64

func (c costs) OpSeconds(i graph.OpID, d int) units.Seconds { return units.Seconds(c[d][i] * 1e-6) }

// random is a problem of n ops: outputs that several ops read, control
// dependencies, groups, devices that are equal or not, and links for every pair or
// one port per device, which all its transfers share.
func random(t testing.TB, rng *rand.Rand, n, d int, cfg sim.Config) *plan.Problem {
	t.Helper()
	b := graph.NewBuilder("random")
	for i := range n {
		var in []graph.TensorID
		for k := 0; i > 0 && k < rng.IntN(4); k++ {
			in = append(in, b.Output(graph.OpID(rng.IntN(i)), rng.IntN(2)))
		}
		op := graph.Op{Name: fmt.Sprint(i), Kind: "MatMul", Forward: graph.None, Resident: units.Bytes(rng.IntN(3000)), Workspace: units.Bytes(rng.IntN(2000))}
		if rng.IntN(4) == 0 {
			op.Group = int32(1 + rng.IntN(2))
		}
		id := b.Op(op, in, graph.Tensor{Bytes: units.Bytes(rng.IntN(30_000))}, graph.Tensor{Bytes: units.Bytes(rng.IntN(9000))})
		if i > 1 && rng.IntN(4) == 0 {
			b.Control(graph.OpID(rng.IntN(i)), id)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	c := make(costs, d)
	equal := rng.IntN(2) == 0
	for v := range c {
		for i := range n {
			if v > 0 && (equal || v > 1) {
				c[v] = append(c[v], c[v-1][i])
			} else {
				c[v] = append(c[v], float64(1+rng.IntN(40)))
			}
		}
	}
	m := machine(rng, d)
	s, err := sim.New(g, m, c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Decision: plan.Decision{Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}, Seed: 1}
}

// machine has d devices; its routes are links of their own, or go out by one port
// and in by another.
func machine(rng *rand.Rand, d int) *hw.Machine {
	m := &hw.Machine{Name: "random", Routes: make([][]int32, d*d)}
	memory := units.Bytes(30_000 + rng.IntN(200_000))
	for v := range d {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint(v), Model: "m", Kind: hw.GPU, Memory: memory, MemoryBandwidth: 1, Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1})
	}
	link := func() int32 {
		m.Links = append(m.Links, hw.Link{Name: fmt.Sprint(len(m.Links)), Bandwidth: 1e9, Latency: 1e-6})
		return int32(len(m.Links) - 1)
	}
	ports := rng.IntN(2) == 0
	for range 2 * d {
		if ports {
			link()
		}
	}
	for v := range d {
		for w := range d {
			switch {
			case v == w:
			case ports:
				m.Routes[v*d+w] = []int32{int32(v), int32(d + w)}
			default:
				m.Routes[v*d+w] = []int32{link()}
			}
		}
	}
	return m
}

// brute tries every placement of the units under every permutation of priorities.
func brute(p *plan.Problem) plan.Score {
	return bruteUnder(p, permutations(p.Graph.NumOps()))
}

// bruteUnder tries every placement of the units under every one of orders.
func bruteUnder(p *plan.Problem, orders [][]int32) plan.Score {
	n, d := p.Graph.NumOps(), p.Machine.NumDevices()
	ops := p.Units.Levels[unit.Op]
	device, of := make([]uint8, n), make([]uint8, ops.NumUnits())
	var best plan.Score
	first := true
	for {
		for i, u := range ops.Of {
			device[i] = of[u]
		}
		for _, o := range orders {
			if s := p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: o}); first || s.Better(best) {
				best, first = s, false
			}
		}
		k := 0
		for ; k < len(of); k++ {
			if of[k]++; int(of[k]) < d {
				break
			}
			of[k] = 0
		}
		if k == len(of) {
			return best
		}
	}
}

func permutations(n int) (all [][]int32) {
	var grow func(p []int32)
	grow = func(p []int32) {
		if len(p) == n {
			all = append(all, append([]int32(nil), p...))
			return
		}
		for r := range int32(n) {
			taken := false
			for _, x := range p {
				taken = taken || x == r
			}
			if !taken {
				grow(append(p, r))
			}
		}
	}
	grow(nil)
	return all
}

// TestAgainstBruteForce: what is called optimal is the best of all placements
// times all permutations, and what is called impossible has none that fits.
func TestAgainstBruteForce(t *testing.T) {
	cases := 80
	if testing.Short() {
		cases = 20
	}
	optimal, impossible := 0, 0
	for seed := range cases {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		n, d := 3+seed%4, 2+seed%2
		if n == 6 {
			d = 2
		}
		p := random(t, rng, n, d, sim.Config{Memory: seed%3 != 0})
		want := brute(p)
		out, proof, err := Exact{}.Solve(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case proof.Impossible:
			impossible++
			if want.Feasible() {
				t.Fatalf("seed %d: called impossible, %v fits", seed, want)
			}
			if !strings.HasPrefix(out.Notes[0], "INFEASIBLE") {
				t.Fatalf("seed %d: note %q", seed, out.Notes[0])
			}
		case proof.Optimal:
			optimal++
			if !want.Feasible() || math.Abs(out.Score.Value-want.Value) > 2e-9*want.Value || !out.Score.Feasible() {
				t.Fatalf("seed %d: %v called optimal, the optimum is %v", seed, out.Score, want)
			}
			if !strings.HasPrefix(out.Notes[0], "OPTIMAL") || proof.Bound > want.Value {
				t.Fatalf("seed %d: note %q, bound %g, optimum %g", seed, out.Notes[0], proof.Bound, want.Value)
			}
		default:
			t.Fatalf("seed %d: no proof: %q", seed, out.Notes)
		}
		if s := p.Evaluator.Evaluate(plan.Decision{Device: out.Device, Priority: orProblems(out.Priority, p)}); s != out.Score {
			t.Fatalf("seed %d: score %v, its plan's is %v", seed, out.Score, s)
		}
	}
	if optimal < cases/2 || impossible == 0 && cases > 20 {
		t.Errorf("%d optimal, %d impossible of %d: too few for a test", optimal, impossible, cases)
	}
}

func orProblems(priority []int32, p *plan.Problem) []int32 {
	if priority == nil {
		return p.Priority
	}
	return priority
}

// TestBounds: on every partial placement the bound is at most the best time of the
// plans that complete it.
func TestBounds(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 6))
		p := random(t, rng, 5, 2, sim.Config{})
		tab := newTable(p)
		b := newBounder(tab)
		device := make([]int8, tab.n)
		final := make([]uint8, tab.n)
		for range 20 {
			fixed := rng.IntN(tab.units.NumUnits() + 1)
			for u, ops := range tab.units.Ops {
				for _, i := range ops {
					device[i] = none
					if u < fixed {
						device[i] = int8(rng.IntN(2))
						device[i] = device[ops[0]]
					}
				}
			}
			bound := b.placement(device)
			for range 50 {
				for _, ops := range tab.units.Ops {
					d := uint8(rng.IntN(2))
					for _, i := range ops {
						if final[i] = d; device[i] != none {
							final[i] = uint8(device[i])
						}
					}
				}
				order := permutations(5)[rng.IntN(120)]
				if s := p.Evaluator.Evaluate(plan.Decision{Device: final, Priority: order}); s.Value < bound*(1-1e-12) {
					t.Fatalf("seed %d: a plan takes %g, the bound is %g", seed, s.Value, bound)
				}
			}
		}
	}
}

// TestSymmetry: exchanging devices of one class changes no plan's time.
func TestSymmetry(t *testing.T) {
	pairs := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := random(t, rng, 7, 3, sim.Config{})
		tab := newTable(p)
		for v := range 3 {
			for w := range v {
				if tab.classes[v] != tab.classes[w] {
					continue
				}
				pairs++
				for range 30 {
					device, other := make([]uint8, 7), make([]uint8, 7)
					for i := range device {
						device[i] = uint8(rng.IntN(3))
						switch other[i] = device[i]; int(device[i]) {
						case v:
							other[i] = uint8(w)
						case w:
							other[i] = uint8(v)
						}
					}
					order := make([]int32, 7)
					for i, r := range rng.Perm(7) {
						order[i] = int32(r)
					}
					if a, b := p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: order}), p.Evaluator.Evaluate(plan.Decision{Device: other, Priority: order}); a != b {
						t.Fatalf("seed %d: %v takes %v, %v %v", seed, device, a, other, b)
					}
				}
			}
		}
	}
	if pairs < 20 {
		t.Errorf("%d pairs of exchangeable devices, too few for a test", pairs)
	}
}
