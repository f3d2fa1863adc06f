package anneal

import (
	"math"
	"slices"
	"testing"

	"placer/plan"
	"placer/sim"
)

// Of the joint moves drawn that is made which the guide wants most, and what is learned
// from is what it came to.
func TestJointGuideChooses(t *testing.T) {
	for _, name := range []string{"place_work", "urge_passes", "fuse_launches"} {
		g := &column{features: NumJointFeatures, scale: 1e9, index: position(t, JointFeatureNames(), name)}
		var told []float64
		p := jointProblem(t, plan.AllTasks, 1000)
		p.Kernels = p.Evaluator.(*sim.Simulator).KernelCosts
		a := Placer{Workers: 1, replicas: 1, JointGuide: g, JointLearn: func(j Judged) { told = append(told, float64(j.Features[g.index])) }}
		o, err := a.Place(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if s := p.Evaluator.Evaluate(plan.Decision{Device: o.Device, Priority: o.Priority, Fusion: o.Fusion}); s != o.Score {
			t.Errorf("%s: the outcome says %v, it has %v", name, o.Score, s)
		}
		if len(told) < 300 || len(told) != len(g.most) {
			t.Fatalf("%s: %d moves judged, %d ranked", name, len(told), len(g.most))
		}
		for k := range told {
			if told[k] != g.most[k] {
				t.Fatalf("move %d has %s %g, the most of those drawn was %g", k, name, told[k], g.most[k])
			}
		}
		if mean := float64(g.moves) / float64(len(g.most)); mean < 4 || mean > drawn {
			t.Errorf("%s: %g moves ranked at a time, want up to %d", name, mean, drawn)
		}
	}
}

// Under any tasks, the features of joint moves are numbers, each of which differs between
// moves of all tasks, and some moves are better.
func TestJudgedJointMoves(t *testing.T) {
	for _, tasks := range []plan.Tasks{plan.AllTasks, plan.Schedule, plan.Fuse, plan.Place | plan.Schedule} {
		var lo, hi [NumJointFeatures]float32
		moves, better := 0, 0
		p := jointProblem(t, tasks, 1500)
		p.Kernels = p.Evaluator.(*sim.Simulator).KernelCosts
		if _, err := (Placer{Workers: 1, replicas: 1, JointLearn: func(j Judged) {
			for k, v := range j.Features {
				if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
					t.Fatalf("%v: feature %s is %g", tasks, JointFeatureNames()[k], v)
				}
				if moves == 0 {
					lo[k], hi[k] = v, v
				}
				lo[k], hi[k] = min(lo[k], v), max(hi[k], v)
			}
			moves++
			if j.Gain > 0 {
				better++
			}
		}}).Place(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if moves < 500 || better == 0 {
			t.Errorf("%v: %d of %d moves are better", tasks, better, moves)
		}
		constant := []string{"devices", "ops"}
		for k, name := range JointFeatureNames() {
			if tasks == plan.AllTasks && lo[k] == hi[k] && !slices.Contains(constant, name) {
				t.Errorf("feature %s is always %g", name, lo[k])
			}
		}
	}
}

// Whatever is drawn and not made, the walk is where it was.
func TestJointPlansLeaveNoTrace(t *testing.T) {
	p := jointProblem(t, plan.AllTasks, 1000)
	p.Kernels = p.Evaluator.(*sim.Simulator).KernelCosts
	j := newJoint(t.Context(), "x", p)
	j.guide = &column{features: NumJointFeatures, scale: 1e9, index: position(t, JointFeatureNames(), "placed")}
	n := p.Graph.NumOps()
	j.consider(plan.Decision{Device: make([]uint8, n), Priority: p.Priority, Fusion: make([]uint8, n)})
	j.prepare()
	for range 300 {
		before := j.decision().Clone()
		j.next(0.001)
		j.undo()
		after := j.decision()
		if !slices.Equal(before.Device, after.Device) || !slices.Equal(before.Priority, after.Priority) || !slices.Equal(before.Fusion, after.Fusion) {
			t.Fatal("a move that was undone has left a trace")
		}
	}
}
