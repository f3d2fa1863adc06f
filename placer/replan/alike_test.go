package replan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/workloads"
)

// TestAssign: the least of all assignments, found by trying them.
func TestAssign(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 6; n++ {
		for range 50 {
			cost := make([][]int64, n)
			for i := range cost {
				for range n {
					cost[i] = append(cost[i], rng.Int64N(20)-10)
				}
			}
			sum := func(to []int) (s int64) {
				for i, j := range to {
					s += cost[i][j]
				}
				return s
			}
			least := int64(math.MaxInt64)
			var try func(to []int)
			try = func(to []int) {
				if len(to) == n {
					least = min(least, sum(to))
					return
				}
				for j := range n {
					if !slices.Contains(to, j) {
						try(append(slices.Clip(to), j))
					}
				}
			}
			try(nil)
			to := assign(cost)
			if got := sum(to); got != least || len(slices.Compact(slices.Sorted(slices.Values(to)))) != n {
				t.Fatalf("%v: %v costs %d, the least is %d", cost, to, got, least)
			}
		}
	}
}

// TestAlike: the experts of a layer can take each other's place, with their gradients and
// updates. Where they do the step is the same, and no more moves.
func TestAlike(t *testing.T) {
	const layers, experts = 3, 4
	g, err := workloads.Build("moe:layers=3,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=16,experts=4,batch=6")
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("a100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	classes := alike(g)
	for _, c := range classes {
		for _, ops := range c {
			if len(ops) != len(c[0]) {
				t.Fatalf("branches of %d and %d ops", len(ops), len(c[0]))
			}
			for k, i := range ops {
				if a, b := g.Op(i), g.Op(c[0][k]); a.Kind != b.Kind || a.FLOPs != b.FLOPs || a.Resident != b.Resident {
					t.Fatalf("%s corresponds to %s", a.Name, b.Name)
				}
			}
		}
		var params int64
		for _, i := range c[0] {
			params += g.Op(i).Params
		}
		if len(c) == experts && params == 3*64*96 {
			found++
		}
	}
	if found != layers {
		t.Errorf("%d of %d layers have experts that are alike", found, layers)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		x := &finder{p: &p.Problem, old: make([]uint8, g.NumOps()), alike: classes}
		device := make([]uint8, g.NumOps())
		group := map[int32]uint8{}
		for i := range device {
			x.old[i], device[i] = uint8(rng.IntN(4)), uint8(rng.IntN(4))
			if k := g.Op(graph.OpID(i)).Group; k > 0 {
				if _, ok := group[k]; !ok {
					group[k] = device[i]
				}
				device[i] = group[k]
			}
		}
		for _, ops := range p.Units.Levels[0].Ops { // units share a device
			for _, i := range ops {
				device[i] = device[ops[0]]
			}
		}
		out := x.swapped(device)
		if x.moved(out) > x.moved(device) {
			t.Errorf("%v move, %v before", x.moved(out), x.moved(device))
		}
		a, b := p.Evaluate(device).Value, p.Evaluate(out).Value
		if math.Abs(a/b-1) > 0.05 { // ties are broken by number
			t.Errorf("the step is %v, %v before", b, a)
		}
	}
}
