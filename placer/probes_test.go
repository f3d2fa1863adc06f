package placer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/plan"
)

// TestProbes: plans ask each level of each class that is not the best plan's, once
// until that changes; they differ from it in few classes, and a class has one level.
func TestProbes(t *testing.T) {
	x := &classes{}
	n := int32(0)
	for c := range int32(100) {
		var ops []int32
		for range 1 + c%3 {
			ops = append(ops, n)
			n++
		}
		x.ops = append(x.ops, ops)
	}
	c := DefaultFusion()
	c.Levels, c.Probes, c.Probed = 5, 7, 0.03
	r := rand.New(rand.NewPCG(3, 1))
	p := newProbes(c, x, r)
	fusion := make([]uint8, n)
	if plans := p.plans(fusion); plans != nil {
		t.Fatal("plans beside no best plan")
	}
	for range 3 {
		for _, ops := range x.ops {
			l := uint8(r.IntN(5))
			for _, i := range ops {
				fusion[i] = l
			}
		}
		p.again()
		asked := make([][5]int, 100)
		for {
			plans := p.plans(fusion)
			if plans == nil {
				break
			}
			if len(plans) > 7 {
				t.Fatalf("%d plans in a round", len(plans))
			}
			for _, f := range plans {
				different := 0
				for c, ops := range x.ops {
					l := f[ops[0]]
					for _, i := range ops {
						if f[i] != l {
							t.Fatalf("class %d has levels %d and %d", c, l, f[i])
						}
					}
					if l != fusion[ops[0]] {
						asked[c][l]++
						different++
					}
				}
				if different > 3 {
					t.Fatalf("%d classes differ", different)
				}
			}
		}
		for c, ops := range x.ops {
			for l, k := range asked[c] {
				if want := 1; k != want && l != int(fusion[ops[0]]) {
					t.Fatalf("level %d of class %d is asked %d times", l, c, k)
				}
			}
		}
	}
}

// TestProbe: what probes tell are the differences that an evaluation of the same
// plans tells, and it counts no evaluation.
func TestProbe(t *testing.T) {
	e, decision := lastStage(t)
	best := e.newDraft(len(e.part.Of))
	e.decode(decision, best)
	e.weigh(best)
	r := rand.New(rand.NewPCG(4, 10))
	var decisions [][]int32
	var plans [][]uint8
	for range 8 {
		d := slices.Clone(decision)
		for range 20 {
			d[e.slot[r.IntN(len(e.slot))]] = r.Int32N(8)
		}
		w := e.newDraft(len(e.part.Of))
		e.decode(d, w)
		decisions, plans = append(decisions, d), append(plans, w.fusion)
	}
	spent := e.spent
	got := e.probe(plans)
	if e.spent != spent {
		t.Error("probes count as evaluations")
	}
	e.evaluate(decisions, make([]plan.Score, len(decisions)))
	for k, want := range e.differences[:len(plans)] {
		if len(want) == 0 || !slices.Equal(got[k], want) {
			t.Fatalf("plan %d: differences %v, by an evaluation %v", k, got[k], want)
		}
	}
}

// TestRefer: ops weigh what the critical path has of their device, and all if it
// has them, but next to nothing where their device could have run them before.
func TestRefer(t *testing.T) {
	e, decision := lastStage(t)
	best := e.newDraft(len(e.part.Of))
	e.decode(decision, best)
	e.weigh(best)
	w := e.workers[0]
	before, onPath := 0, 0
	for i, weight := range e.reference.weight {
		d := best.device[i]
		want := anywhere + onDevice*e.weight[d]
		if w.on[i] {
			want += 1 - onDevice
		}
		if w.idle[i] >= w.evaluator.OpSeconds(int(d))[i] {
			want = anywhere
			if w.on[i] {
				before++
			}
		} else if w.on[i] {
			onPath++
		}
		if math.Abs(weight-want) > 1e-12 {
			t.Fatalf("op %d weighs %g, want %g", i, weight, want)
		}
	}
	if before == 0 || onPath == 0 {
		t.Errorf("%d ops on the critical path, %d could have run before: the case tests nothing", onPath, before)
	}
}
