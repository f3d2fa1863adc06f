package replan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph/unit"
	"placer/placer/problem"
	"placer/units"
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
	p, err := problem.Workload("moe:layers=3,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=16,experts=4,batch=6", "a100", 4, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	cells := p.Units.Levels[unit.Cell]
	sums := func(cell int32) (flops units.FLOPs, held units.Bytes, params int64) {
		for _, i := range cells.Ops[cell] {
			o := p.Graph.Op(i)
			flops, held, params = flops+o.FLOPs, held+o.Resident, params+o.Params
		}
		return flops, held, params
	}
	classes := alike(p.Graph, cells)
	for _, c := range classes {
		for _, us := range c {
			if len(us) != len(c[0]) {
				t.Fatalf("branches of %d and %d cells", len(us), len(c[0]))
			}
			for k, u := range us {
				fa, ha, pa := sums(u)
				if fb, hb, pb := sums(c[0][k]); math.Abs(float64(fa-fb)) > 1e-3*float64(fa) || pa != pb || math.Abs(float64(ha-hb)) > 1e3 {
					t.Fatalf("%s corresponds to %s", p.Graph.Op(cells.Ops[u][0]).Name, p.Graph.Op(cells.Ops[c[0][k]][0]).Name)
				}
			}
		}
		var params int64
		for _, u := range c[0] {
			_, _, more := sums(u)
			params += more
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
		x := &finder{p: &p.Problem, old: make([]uint8, p.Graph.NumOps()), alike: classes}
		device := make([]uint8, p.Graph.NumOps())
		for i := range x.old {
			x.old[i] = uint8(rng.IntN(4))
		}
		for _, ops := range cells.Ops {
			d := uint8(rng.IntN(4))
			for _, i := range ops {
				device[i] = d
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
