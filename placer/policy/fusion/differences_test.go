package fusion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/placer/problem/problemtest"
	"placer/plan"
	"placer/sim"
)

func randomLevels(r *rand.Rand, x *classes) []int32 {
	level := make([]int32, len(x.ops))
	for c := range level {
		level[c] = r.Int32N(levels)
	}
	return level
}

// TestReference: ops weigh what the critical path has of their device, and all if it
// has them, but next to nothing where their device could have run them before. The
// weights of the devices are their parts of the critical path.
func TestReference(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Fuse)
	l, x := newLearner(t, p)
	best := decided(p, x, randomLevels(rand.New(rand.NewPCG(4, 8)), x))
	r := l.newReference(best)
	result, err := p.Evaluator.(*sim.Simulator).Run(&plan.Plan{Decision: *best}, sim.Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	part, path := make([]float64, 2), map[graph.OpID]bool{}
	for _, x := range result.CriticalPath {
		if !x.Transfer {
			part[x.Device] += float64((x.End - x.Start) / result.Makespan)
			path[x.Op] = true
		}
	}
	for d := range part {
		if part[d] == 0 || math.Abs(part[d]-l.weight[d]) > 1e-12 {
			t.Errorf("device %d has weight %g, its part of the path is %g", d, l.weight[d], part[d])
		}
	}
	n := len(best.Device)
	on, idle := make([]bool, n), make([]float64, n)
	p.Kernels().Critical(&plan.Plan{Decision: *best}, make([]float64, 2), on, idle)
	before, onPath := 0, 0
	for _, run := range result.Trace.Ops {
		for _, i := range append(run.Fused, run.Op) {
			d := best.Device[i]
			want := anywhere + onDevice*l.weight[d]
			if path[run.Op] {
				want += 1 - onDevice
			}
			if idle[i] >= p.Evaluator.OpSeconds(int(d))[i] {
				want = anywhere
				if path[run.Op] {
					before++
				}
			} else if path[run.Op] {
				onPath++
			}
			if on[i] != path[run.Op] || math.Abs(r.weight[i]-want) > 1e-12 {
				t.Fatalf("op %d weighs %g, want %g", i, r.weight[i], want)
			}
		}
	}
	if before == 0 || onPath == 0 {
		t.Errorf("%d ops on the critical path, %d could have run before: the case tests nothing", onPath, before)
	}
}

// TestDifferences: a class that alone has another level is told what all kernels
// together take more, for certain; two that change different kernels are each told
// their own, and two that change the same ones both of them, with less weight.
func TestDifferences(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Fuse)
	l, x := newLearner(t, p)
	decision := randomLevels(rand.New(rand.NewPCG(4, 8)), x)
	reference := l.newReference(decided(p, x, decision))
	// weighted sums the seconds of the kernels of d, each by the op in it that weighs most.
	weighted := func(d []int32) (sum float64) {
		y := l.price(0, x, d)
		most := make([]float64, len(y.takes))
		for i, k := range y.kernel {
			most[k] = max(most[k], reference.weight[i])
		}
		for k, s := range y.takes {
			sum += s * most[k]
		}
		return sum
	}
	table := &differences{learner: l, classes: x, reference: reference, sum: table(len(x.ops)), count: table(len(x.ops)), regions: make([]regions, 1)}
	evaluate := func(d []int32) []difference {
		table.compare([][]int32{d})
		return slices.Clone(table.found[0])
	}
	if d := evaluate(decision); len(d) != 0 {
		t.Fatalf("the reference differs from itself: %v", d)
	}
	base := weighted(decision)
	r := rand.New(rand.NewPCG(4, 9))
	other := func(d []int32, c int) []int32 {
		d = slices.Clone(d)
		d[c] = (d[c] + 1 + r.Int32N(7)) % 8
		return d
	}
	alone, changes := map[int]difference{}, 0
	var changed [][]int32
	for c := range x.ops {
		other := other(decision, c)
		d := evaluate(other)
		want := weighted(other) - base
		if len(d) != 1 || int(d[0].class) != c || d[0].level != other[c] || d[0].weight != 1 || math.Abs(d[0].seconds-want) > 1e-12 {
			t.Fatalf("class %d alone: %v, all kernels take %g s more", c, d, want)
		}
		if alone[c] = d[0]; want != 0 {
			changes++
		}
		changed = append(changed, other)
	}
	if changes < 20 {
		t.Fatalf("%d classes change anything: the case tests nothing", changes)
	}
	apart, together := 0, 0
	for range 400 {
		a, b := r.IntN(len(x.ops)), r.IntN(len(x.ops))
		if a == b {
			continue
		}
		both := slices.Clone(changed[a])
		both[b] = changed[b][b]
		d := evaluate(both)
		if len(d) != 2 {
			t.Fatalf("two classes changed, %d differences", len(d))
		}
		all := weighted(both) - base
		switch {
		case d[0].weight == 1 && d[1].weight == 1:
			if math.Abs(d[0].seconds+d[1].seconds-all) > 1e-12 || math.Abs(d[0].seconds-alone[int(d[0].class)].seconds) > 1e-12 {
				t.Fatalf("apart: %v, all kernels take %g s more, the first alone %v", d, all, alone[int(d[0].class)])
			}
			apart++
		case d[0].weight == 0.25 && d[1].weight == 0.25:
			together++
		default:
			t.Fatalf("weights of %v", d)
		}
	}
	if apart == 0 || together == 0 {
		t.Errorf("%d pairs apart, %d together: the case tests nothing", apart, together)
	}
}

// TestGains: what levels gain is relative to the best plan, and stays so when that
// takes another level; probabilities go to the level that gains most.
func TestGains(t *testing.T) {
	x := &classes{ops: [][]int32{{0, 1}, {2}}}
	g := newDifferences(&learner{random: rand.New(rand.NewPCG(1, 2))}, x)
	g.follow([]uint8{1, 1, 0}, 0.1)
	g.take([][]difference{{{0, 2, -1e-3, 1}, {1, 2, 1e-3, 0.25}}, {{0, 0, 2e-3, 1}}})
	probability := []float64{0, 1, 0, 0, 0, 0, 0, 0}
	g.adjust(0, probability, 1)
	if math.Abs(probability[1]-(1-byDifference)) > 1e-9 || math.Abs(probability[2]-byDifference) > 1e-9 {
		t.Errorf("level 2 gains and 1 is the plan's: probabilities %g", probability)
	}
	g.follow([]uint8{2, 2, 1}, 0.099)
	if s := g.sum[0]; math.Abs(s[0]-3e-3) > 1e-15 || math.Abs(s[1]-1e-3) > 1e-15 || s[2] != 0 || g.count[0][1] != 1 {
		t.Errorf("relative to level 2 the others cost %g (weight %g), want 3e-3 and 1e-3", s, g.count[0])
	}
	if slices.Max(g.count[1]) != 0 {
		t.Errorf("what a level brings that the plan left for an unknown one is known: %g", g.count[1])
	}
	probability = []float64{1, 0, 0, 0, 0, 0, 0, 0}
	g.adjust(0, probability, 1-exploreEnd/2) // half of the way to no exploration
	if want := (1 - byDifference) * explore * finer / 2 / levels; math.Abs(probability[1]-want) > 1e-9 {
		t.Errorf("explored to %g, want %g", probability, want)
	}
}

// TestLookahead: plans ask each level of each class that is not the best plan's, once
// until that changes; they differ from it in few classes.
func TestLookahead(t *testing.T) {
	const classesN, most = 100, 7
	r := rand.New(rand.NewPCG(3, 1))
	p := newLookahead(&classes{ops: make([][]int32, classesN)}, r)
	best := make([]int32, classesN)
	if plans := p.plans(best, most); plans != nil {
		t.Fatal("plans beside no best plan")
	}
	for range 3 {
		for c := range best {
			best[c] = r.Int32N(levels)
		}
		p.again()
		asked := make([][levels]int, classesN)
		for plans := p.plans(best, most); plans != nil; plans = p.plans(best, most) {
			if len(plans) > most {
				t.Fatalf("%d plans in a round", len(plans))
			}
			for _, one := range plans {
				different := 0
				for c, a := range one {
					if a != best[c] {
						asked[c][a]++
						different++
					}
				}
				if different > aheadShare*classesN {
					t.Fatalf("%d classes differ", different)
				}
			}
		}
		for c := range asked {
			for a, k := range asked[c] {
				if k != 1 && a != int(best[c]) {
					t.Fatalf("level %d of class %d is asked %d times", a, c, k)
				}
			}
		}
	}
}
