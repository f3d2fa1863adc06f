package placer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
)

// TestAttribute: what kernels cost a class is, over the kernels that hold one of
// its ops, what they take less what their ops take alone, by the weight of their
// device; and the weights are the devices' parts of the critical path, whose ops are
// told too.
func TestAttribute(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	p.Tasks, p.Device = plan.Fuse, p.Units.Blocks(p.Evaluator.OpSeconds(0), 2)
	e := newEnvironment(p, DefaultPolicy().forTasks(p))
	e.fit(nil, 200)
	if err := e.decideOn(p, stage{part: p.Units.Levels[unit.Chain]}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 5))
	actions, scores := make([][]int32, 3), make([]plan.Score, 3)
	for k := range actions {
		for range e.part.NumUnits() * e.kinds {
			actions[k] = append(actions[k], int32(r.IntN(8)))
		}
	}
	copy(e.weight, []float64{0.25, 2})
	e.evaluate(actions, scores)
	w := e.workers[0]
	result, err := p.Evaluator.(*sim.Simulator).Run(&plan.Plan{Device: w.device, Priority: w.priority, Fusion: w.fusion}, sim.Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	own := p.Evaluator.OpSeconds(0)
	want := make([]float64, len(e.class.ops))
	for _, x := range result.Trace.Ops {
		cost, classes := float64(x.End-x.Start)-own[x.Op], map[int32]bool{e.class.of[x.Op]: true}
		for _, i := range x.Fused {
			cost -= own[i]
			classes[e.class.of[i]] = true
		}
		for c := range classes {
			if c >= 0 {
				want[c] += cost * []float64{0.25, 2}[x.Device]
			}
		}
	}
	saves := false
	for c, s := range e.cost(3)[2] {
		saves = saves || s < 0
		if math.Abs(s-want[c]) > 1e-9 {
			t.Fatalf("kernels cost class %d %g s, want %g", c, s, want[c])
		}
	}
	if !saves {
		t.Error("no kernel saves anything: the case tests nothing")
	}
	e.weigh(w.draft)
	part, path := make([]float64, 2), map[graph.OpID]bool{}
	for _, x := range result.CriticalPath {
		if !x.Transfer {
			part[x.Device] += float64((x.End - x.Start) / result.Makespan)
			path[x.Op] = true
		}
	}
	for _, x := range result.Trace.Ops {
		for _, i := range append(x.Fused, x.Op) {
			if w.on[i] != path[x.Op] {
				t.Errorf("op %d of kernel %d is on the critical path: %v, want %v", i, x.Op, w.on[i], path[x.Op])
			}
		}
	}
	for d := range part {
		if part[d] == 0 || math.Abs(part[d]-e.weight[d]) > 1e-12 {
			t.Errorf("device %d has weight %g, its part of the path is %g", d, e.weight[d], part[d])
		}
	}
}

// TestWorth: levels that cost a class less come to be likelier, by the time near
// it where that is told and by the whole step where it is not, and steering keeps
// chances chances: those of worth at first, then nearly those of imitation.
func TestWorth(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 6))
	c := DefaultFusion()
	c.Levels = 3
	for _, tells := range []bool{true, false} {
		w := newWorth(c, 2, false)
		for range 30 {
			var round []sample
			var cost [][]float64
			for range 16 {
				s := sample{level: []int32{int32(r.IntN(3)), int32(r.IntN(3))}}
				near := []float64{1e-3 * float64(s.level[0]), 1e-3 * float64(2-s.level[1])}
				s.score.Seconds = 0.1 + near[0] + near[1]
				if tells { // the step says nothing
					s.score.Seconds = 0.1 + 1e-3*r.Float64()
					cost = append(cost, near)
				}
				round = append(round, s)
			}
			w.add(round, cost, 0.5, 0.1)
		}
		if x, y := w.chance[0], w.chance[1]; !(x[0] > 2*x[1] && x[1] > 2*x[2] && y[2] > 2*y[1] && y[1] > 2*y[0]) {
			t.Errorf("told %v: chances %.3f and %.3f", tells, x, y)
		}
		chance := []float64{0, 0, 1}
		w.steer(0, chance, c.Warm/2)
		if !slices.Equal(chance, w.chance[0]) {
			t.Errorf("at first the chances are %g, want %g", chance, w.chance[0])
		}
		chance = []float64{0, 0, 1}
		w.steer(0, chance, 0.5)
		low := c.Explore * ((1-c.Guided)/3 + c.Guided*w.chance[0][1])
		if sum := chance[0] + chance[1] + chance[2]; math.Abs(sum-1) > 1e-12 || math.Abs(chance[1]-low) > 1e-12 || chance[0] <= chance[1] {
			t.Errorf("steered to %g, which sum to %g; the second should be %g", chance, sum, low)
		}
		w.steer(0, chance, 1)
		if chance[0]+chance[1] > c.Explore {
			t.Errorf("at the end it still explores: %g", chance)
		}
	}
}

// TestLeave: a class of the next stage has the level of the plan that the stage
// begins at, and with a small chance what the class that it was part of would do.
func TestLeave(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	p.Tasks, p.Device = plan.Fuse, make([]uint8, p.Graph.NumOps())
	c := DefaultPolicy().forTasks(p)
	e := newEnvironment(p, c)
	units := curricula(p.Graph, p.Units, unit.Chain, p.Evaluator.OpSeconds(0), 2)[0]
	if n := len(c.Fusion.fusionStages(units, e.plain, p.Units, false)); n != 3 {
		t.Fatalf("%d stages where the evaluator does not tell", n)
	}
	stages := c.Fusion.fusionStages(units, e.plain, p.Units, true)
	if len(stages) != 4 {
		t.Fatalf("%d stages", len(stages))
	}
	for k, s := range stages[1:] {
		if len(s.class.ops) <= len(stages[k].class.ops) {
			t.Fatalf("classes that do not become more in stage %d", k+1)
		}
	}
	e.fit([][]stage{stages}, 3)
	r := rand.New(rand.NewPCG(4, 7))
	fusion := make([]uint8, p.Graph.NumOps())
	for i := range fusion {
		fusion[i] = uint8(r.IntN(2))
	}
	x, y, from, to := stages[0].class, stages[1].class, stages[0].part, stages[1].part
	rows := make([][]float32, from.NumUnits())
	for u := range rows {
		rows[u] = make([]float32, 2*e.kinds) // both levels alike
	}
	down := x.leave(y, rows, e.kinds, 2, from, to, fusion, 0.1)
	for k, slot := range y.slots(to, e.kinds) {
		u, l := int(slot)/e.kinds, int(slot)%e.kinds*2
		stay := math.Exp(float64(down[u][l+int(fusion[y.ops[k][0]])]))
		if math.Abs(stay-0.95) > 1e-5 {
			t.Fatalf("class %d stays with chance %g, want 0.95", k, stay)
		}
	}
}
