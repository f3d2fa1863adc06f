package placer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/plan"
)

// TestClasses: every op that can be fused with a reader is in one class, no class
// is empty, the ops of a class are of one kind and read the same kinds, and there
// are never more classes than asked for.
func TestClasses(t *testing.T) {
	p := problem(t, "rnnlm2", 2)
	seconds := p.Evaluator.OpSeconds(0)
	for _, most := range []int{1, 5, 60, 1000} {
		x := newClasses(p.Graph, seconds, most)
		if len(x.ops) > most {
			t.Errorf("%d classes, want at most %d", len(x.ops), most)
		}
		able := slices.Sorted(slices.Values(fuse.NewRules(p.Graph).Able()))
		var all []int32
		for c, ops := range x.ops {
			if len(ops) == 0 {
				t.Errorf("class %d is empty", c)
			}
			all = append(all, ops...)
			surroundings := map[string]bool{}
			for _, i := range ops {
				if x.of[i] != int32(c) {
					t.Fatalf("op %d is in class %d, said to be in %d", i, c, x.of[i])
				}
				text := fmt.Sprint(p.Graph.Op(graph.OpID(i)).Kind)
				for _, in := range p.Graph.Inputs(graph.OpID(i)) {
					text += fmt.Sprint(" ", p.Graph.Op(p.Graph.Tensor(in).Producer).Kind)
				}
				surroundings[text] = true
			}
			if most == 1000 && len(surroundings) > 1 {
				t.Errorf("class %d has %v", c, surroundings)
			}
		}
		slices.Sort(all)
		if !slices.Equal(all, able) {
			t.Errorf("most %d: the classes hold %d ops, want the %d that can be fused", most, len(all), len(able))
		}
		if most == 1000 && (len(x.ops) < 20 || len(x.ops)*3 > len(able)) {
			t.Errorf("%d classes of %d ops: no classes at all", len(x.ops), len(able))
		}
	}
}

// TestClassSlots: each class has a choice of its own on every stage, the ops of a
// class get its level wherever they are, the other choices are idle, and logits
// follow their class from stage to stage.
func TestClassSlots(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	p.Tasks, p.Device = plan.Fuse, make([]uint8, p.Graph.NumOps())
	e := newEnvironment(p, DefaultPolicy())
	stages := curricula(p.Graph, p.Units, unit.Chain, p.Evaluator.OpSeconds(0), 2)
	e.fit(stages, 3)
	r := rand.New(rand.NewPCG(4, 4))
	for _, s := range stages[0] {
		if err := e.decideOn(p, s); err != nil {
			t.Fatal(err)
		}
		x := e.class
		action := make([]int32, s.part.NumUnits()*e.kinds)
		for k := range action {
			action[k] = int32(r.IntN(4))
		}
		w := e.newDraft(p.Graph.NumOps())
		e.decode(action, w)
		used := map[int32]bool{}
		for c, ops := range x.ops {
			if used[e.slot[c]] {
				t.Fatalf("stage %s: classes share choice %d", s.name, e.slot[c])
			}
			used[e.slot[c]] = true
			for _, i := range ops {
				if int32(w.fusion[i]) != action[e.slot[c]] {
					t.Fatalf("op %d of class %d has level %d, want %d", i, c, w.fusion[i], action[e.slot[c]])
				}
			}
		}
		advantage := slices.Repeat([]float32{1}, len(action))
		e.idle(advantage)
		for k, a := range advantage {
			if (a == 1) != used[int32(k)] {
				t.Fatalf("choice %d has advantage %g", k, a)
			}
		}
	}
	coarse, fine := stages[0][0].part, stages[0][len(stages[0])-1].part
	rows := make([][]float32, coarse.NumUnits())
	for u := range rows {
		for range e.kinds * 2 {
			rows[u] = append(rows[u], float32(r.NormFloat64()*2))
		}
	}
	down := e.plain.carry(rows, e.kinds, 2, coarse, fine, carriedRange)
	from, to := e.plain.slots(coarse, e.kinds), e.plain.slots(fine, e.kinds)
	for c := range to {
		at := int(from[c])
		u, k, v, l := at/e.kinds, at%e.kinds, int(to[c])/e.kinds, int(to[c])%e.kinds
		had, has := rows[u][2*k]-rows[u][2*k+1], down[v][2*l]-down[v][2*l+1]
		if want := min(max(had, -carriedRange), carriedRange); math.Abs(float64(has-want)) > 1e-5 {
			t.Fatalf("class %d: logits differ by %g, want %g", c, has, want)
		}
	}
}

// TestLocalCredit: near a class are its ops, those that read them or are read by
// them within a kernel, and theirs; the shares of the ops add up to the time of the
// kernels; credit is the standardised time near, mixed with what was there.
func TestLocalCredit(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	p.Tasks, p.Device = plan.Fuse, make([]uint8, p.Graph.NumOps())
	config := DefaultPolicy()
	config.Fusion.Imitation.Window = 0 // with imitation there is no local credit
	e := newEnvironment(p, config)
	e.fit(nil, 200)
	if err := e.decideOn(p, stage{part: p.Units.Levels[unit.Chain]}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 5))
	actions, scores := make([][]int32, 8), make([]plan.Score, 8)
	for k := range actions {
		for range e.part.NumUnits() * e.kinds {
			actions[k] = append(actions[k], int32(r.IntN(4)))
		}
	}
	e.evaluate(actions, scores)
	// On one device with nothing to wait for, the step is the sum of the kernels.
	w := e.workers[0]
	sum := 0.0
	for _, s := range w.share {
		sum += s
	}
	if want := scores[7].Seconds; math.Abs(sum-want) > 1e-9*want {
		t.Errorf("the shares sum to %g s, the step takes %g s", sum, want)
	}
	rules := fuse.NewRules(p.Graph)
	linked := func(a, b int32) bool {
		return rules.Hands(graph.OpID(a), graph.OpID(b)) || rules.Hands(graph.OpID(b), graph.OpID(a))
	}
	c := len(e.near) / 2
	inside := map[int32]int{}
	for _, i := range e.class.ops[c] {
		inside[i] = 0
	}
	for step := 1; step <= nearSteps; step++ {
		for i, d := range inside {
			if d != step-1 {
				continue
			}
			for j := range int32(p.Graph.NumOps()) {
				if _, known := inside[j]; !known && linked(i, j) {
					inside[j] = step
				}
			}
		}
	}
	if len(inside) != len(e.near[c]) {
		t.Errorf("%d ops near class %d, want %d", len(e.near[c]), c, len(inside))
	}
	near := 0.0
	for i := range inside {
		near += w.share[i]
	}
	if math.Abs(near-e.local[7][c]) > 1e-12 {
		t.Errorf("%g s near class %d, want %g", e.local[7][c], c, near)
	}
	perChoice := make([][]float32, 8)
	for k := range perChoice {
		perChoice[k] = slices.Repeat([]float32{2}, len(actions[k]))
	}
	e.credit(perChoice, 0.25, 0)
	mean, square := 0.0, 0.0
	for k := range perChoice {
		mean += e.local[k][c] / 8
		square += e.local[k][c] * e.local[k][c] / 8
	}
	deviation := math.Sqrt(square - mean*mean)
	for k := range perChoice {
		want := 0.75*2 + 0.25*(mean-e.local[k][c])/deviation
		if got := float64(perChoice[k][e.slot[c]]); math.Abs(got-want) > 1e-3 {
			t.Errorf("sample %d: advantage %g, want %g", k, got, want)
		}
	}
}
