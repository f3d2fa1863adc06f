package placer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/plan"
	"placer/sim"
)

// lastStage returns an environment for fusion alone in its last stage, and a
// decision in which every class has some level.
func lastStage(t *testing.T) (e *environment, decision []int32) {
	p := problem(t, "trfxl2", 2)
	p.Tasks, p.Device = plan.Fuse, p.Units.Blocks(p.Evaluator.OpSeconds(0), 2)
	c := DefaultPolicy().forTasks(p)
	e = newEnvironment(p, c)
	stages := c.Fusion.fusionStages(curricula(p.Graph, p.Units, c.Level, p.Evaluator.OpSeconds(0), 2)[0], e.plain, p.Units, true)
	e.fit([][]stage{stages}, c.FusionKinds)
	if err := e.decideOn(p, stages[2]); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 8))
	decision = make([]int32, e.part.NumUnits()*e.kinds)
	for k := range decision {
		decision[k] = int32(r.IntN(8))
	}
	return e, decision
}

// weighted sums the seconds of the kernels of e's last decision, each by the op in
// it that weighs most.
func weighted(e *environment) (sum float64) {
	kernel, takes := e.workers[0].evaluator.(*sim.Simulator).Kernels()
	most := make([]float64, len(takes))
	for i, k := range kernel {
		most[k] = max(most[k], e.reference.weight[i])
	}
	for k, x := range takes {
		sum += x * most[k]
	}
	return sum
}

// TestDifferences: a class that alone has another level is told what all kernels
// together take more, for certain; two that change different kernels are each told
// their own, and two that change the same ones both of them, with less trust.
func TestDifferences(t *testing.T) {
	e, decision := lastStage(t)
	evaluate := func(d []int32) []difference {
		e.evaluate([][]int32{d}, make([]plan.Score, 1))
		return slices.Clone(e.differences[0])
	}
	if evaluate(decision); len(e.differences[0]) != 0 {
		t.Fatal("differences from no reference")
	}
	best := e.newDraft(len(e.part.Of))
	e.decode(decision, best)
	e.weigh(best)
	if d := evaluate(decision); len(d) != 0 {
		t.Fatalf("the reference differs from itself: %v", d)
	}
	base := weighted(e)
	r := rand.New(rand.NewPCG(4, 9))
	other := func(d []int32, c int) []int32 {
		d = slices.Clone(d)
		d[e.slot[c]] = (d[e.slot[c]] + 1 + r.Int32N(7)) % 8
		return d
	}
	alone, changes := map[int]difference{}, 0
	var changed [][]int32
	for c := range e.class.ops {
		x := other(decision, c)
		d := evaluate(x)
		want := weighted(e) - base
		if len(d) != 1 || int(d[0].class) != c || d[0].level != x[e.slot[c]] || d[0].trust != 1 || math.Abs(d[0].seconds-want) > 1e-12 {
			t.Fatalf("class %d alone: %v, all kernels take %g s more", c, d, want)
		}
		if alone[c] = d[0]; want != 0 {
			changes++
		}
		changed = append(changed, x)
	}
	if changes < 20 {
		t.Fatalf("%d classes change anything: the case tests nothing", changes)
	}
	apart, together := 0, 0
	for range 200 {
		a, b := r.IntN(len(e.class.ops)), r.IntN(len(e.class.ops))
		if a == b {
			continue
		}
		x := slices.Clone(changed[a])
		x[e.slot[b]] = changed[b][e.slot[b]]
		d := evaluate(x)
		if len(d) != 2 {
			t.Fatalf("two classes changed, %d differences", len(d))
		}
		all := weighted(e) - base
		switch {
		case d[0].trust == 1 && d[1].trust == 1:
			if math.Abs(d[0].seconds+d[1].seconds-all) > 1e-12 || math.Abs(d[0].seconds-alone[int(d[0].class)].seconds) > 1e-12 {
				t.Fatalf("apart: %v, all kernels take %g s more, the first alone %v", d, all, alone[int(d[0].class)])
			}
			apart++
		case d[0].trust == 0.25 && d[1].trust == 0.25:
			together++
		default:
			t.Fatalf("trust of %v", d)
		}
	}
	if apart == 0 || together == 0 {
		t.Errorf("%d pairs apart, %d together: the case tests nothing", apart, together)
	}
}

// TestFusionIsDeterministic: fusion alone is learnt alike on one goroutine and on
// three, through all its stages, and comes to a shorter step than fusing all.
func TestFusionIsDeterministic(t *testing.T) {
	fuses := func() *plan.Problem {
		p := problem(t, "rnnlm2", 2)
		p.Tasks, p.Device, p.Budget = plan.Fuse, p.Units.Blocks(p.Evaluator.OpSeconds(0), 2), plan.Budget{Evaluations: 240}
		return p
	}
	o, p := sameOnWorkers(t, fuses), fuses()
	all := slices.Repeat([]uint8{1}, len(o.Fusion))
	if x := p.Evaluator.EvaluateFused(p.Device, p.Priority, all); !o.Score.Better(x) {
		t.Errorf("%g s, fusing all %g s", o.Score.Seconds, x.Seconds)
	}
}

// TestGains: what levels gain is relative to the best plan, and stays so when that
// takes another level; chances go to the level that gains most.
func TestGains(t *testing.T) {
	x := &classes{ops: [][]int32{{0, 1}, {2}}}
	c := DefaultFusion()
	c.Levels, c.Explore, c.Settle = 3, 0, 0.5
	g := newGains(c, x, rand.New(rand.NewPCG(1, 2)))
	chance := []float64{0, 1, 0}
	g.steer(0, chance, 0.9)
	if chance[1] != 1 {
		t.Errorf("no plan to be better than, but chances %g", chance)
	}
	g.follow(x, []uint8{1, 1, 0}, 0.1)
	g.add([][]difference{{{0, 2, -1e-3, 1}, {1, 2, 1e-3, 0.25}}, {{0, 0, 2e-3, 1}}})
	g.steer(0, chance, 0.9)
	if math.Abs(chance[1]-0.5) > 1e-9 || math.Abs(chance[2]-0.5) > 1e-9 {
		t.Errorf("level 2 gains and 1 is the plan's: chances %g", chance)
	}
	g.follow(x, []uint8{2, 2, 1}, 0.099)
	if s := g.sum[0]; math.Abs(s[0]-3e-3) > 1e-15 || math.Abs(s[1]-1e-3) > 1e-15 || s[2] != 0 || g.count[0][1] != 1 {
		t.Errorf("relative to level 2 the others cost %g (trust %g), want 3e-3 and 1e-3", s, g.count[0])
	}
	if !slices.Equal(g.count[1], []float64{0, 0, 0}) {
		t.Errorf("what a level brings that the plan left for an unknown one is known: %g", g.count[1])
	}
	chance = []float64{1, 0, 0}
	c.Explore, c.Finer, c.Settle = 0.3, 0.5, 0
	g.FusionConfig = c
	g.steer(0, chance, 0.9) // half of the way to no exploration
	if math.Abs(chance[0]-0.95) > 1e-12 || math.Abs(chance[1]-0.025) > 1e-12 {
		t.Errorf("explored to %g, want 0.95 and twice 0.025", chance)
	}
}
