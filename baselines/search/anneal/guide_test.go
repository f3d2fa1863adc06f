package anneal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/plan"
	"placer/sim"
)

// column is a guide for tests: it wants the move that is largest in one feature.
type column struct {
	features int     // of a move
	scale    float32 // of its scores: large enough that the best is all but certain
	index    int
	most     []float64 // of the moves of each Rank
	moves    int
}

func (c *column) Rank(x, score []float32) {
	most := math.Inf(-1)
	for k := range score {
		v := x[k*c.features+c.index]
		score[k] = c.scale * v
		most = max(most, float64(v))
	}
	c.most = append(c.most, most)
	c.moves += len(score)
}

// position returns that of a feature among names.
func position(t *testing.T, names []string, name string) int {
	t.Helper()
	k := slices.Index(names, name)
	if k < 0 {
		t.Fatalf("no feature %q", name)
	}
	return k
}

// timed returns the training step as a problem that knows when ops run.
func timed(t *testing.T) *plan.Problem {
	t.Helper()
	p := problemOf(t, "training step")
	p.Kernels = p.Evaluator.(*sim.Simulator).KernelCosts
	return p
}

// walker returns a replica on the training step whose moves g chooses.
func walker(t *testing.T, g Guide, learn func(Judged)) (*replica, *plan.Problem) {
	t.Helper()
	p := timed(t)
	r := newRun(t.Context(), Placer{Guide: g, Learn: learn, replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	w := newReplica(r.cells, exactObjective(r.p, r.cells), p.Machine.NumDevices(), rand.NewPCG(1, 2))
	w.start(make([]uint8, len(w.seconds)))
	return r.advised(w, &stage{}), p
}

// The move that is made is the one that the guide wants most of those drawn, or one of
// which the guide is not asked.
func TestGuideChooses(t *testing.T) {
	g := &column{features: NumMoveFeatures, scale: 1e4, index: position(t, MoveFeatureNames(), "work")}
	var told []float64
	var w *replica
	judged := 0
	w, _ = walker(t, g, func(j Judged) {
		judged++
		if len(w.adviser.moves) > 1 {
			told = append(told, float64(j.Features[g.index]))
		}
	})
	for range 1000 {
		w.step(0.01, 4)
	}
	if share := 1 - float64(len(told))/float64(judged); judged < 300 || math.Abs(share-byChance) > 0.1 {
		t.Errorf("%d moves judged, a share of %.2f by chance, want %g", judged, share, byChance)
	}
	if len(told) != len(g.most) {
		t.Fatalf("%d moves chosen, %d times asked", len(told), len(g.most))
	}
	for k := range told {
		if told[k] != g.most[k] {
			t.Fatalf("move %d has work %g, the most of those drawn was %g", k, told[k], g.most[k])
		}
	}
	if mean := float64(g.moves) / float64(len(g.most)); mean < 4 || mean > drawn {
		t.Errorf("%g moves ranked at a time, want up to %d", mean, drawn)
	}
}

// Whatever is planned and not made, the replica's books agree with its decisions.
func TestPlansLeaveNoTrace(t *testing.T) {
	w, p := walker(t, &column{features: NumMoveFeatures, scale: 1e4, index: position(t, MoveFeatureNames(), "net")}, nil)
	for k, run := range []int{whole, 64, 4, 1} {
		for range 200 {
			w.step(0.01/float64(k+1), run)
			for u, ops := range w.objective.members {
				for _, i := range ops {
					if w.objective.device[i] != w.now[u] {
						t.Fatalf("decision %d is on device %d, its op %d on %d", u, w.now[u], i, w.objective.device[i])
					}
				}
			}
		}
	}
	if s := p.Evaluator.Evaluate(plan.Decision{Device: w.objective.device, Priority: p.Priority}); s != w.score {
		t.Errorf("score is %v, that of the decisions %v", w.score, s)
	}
}

// What is learned from is what moves came to, with features that are numbers, of which
// each differs between moves.
func TestJudgedMoves(t *testing.T) {
	var lo, hi [NumMoveFeatures]float32
	moves, better := 0, 0
	w, _ := walker(t, nil, func(j Judged) {
		for k, v := range j.Features {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("feature %s is %g", MoveFeatureNames()[k], v)
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
	})
	improved := 0
	for k := range 3000 {
		before, spent := w.cost, w.spent
		w.step(0.02, []int{1, 4, 64}[k%3])
		if w.spent == spent+1 && w.cost < before && w.stale != 0 || w.cost < before && w.stale == 0 && w.spent == spent+1 {
			improved++
		}
	}
	if better != improved || better == 0 {
		t.Errorf("%d moves of %d told to be better, %d were", better, moves, improved)
	}
	constant := []string{"devices", "decisions", "temperature", "weightless"}
	for k, name := range MoveFeatureNames() {
		if lo[k] == hi[k] && !slices.Contains(constant, name) {
			t.Errorf("feature %s is always %g", name, lo[k])
		}
	}
}

// A move that was rejected is not made again from the same place, until it is forgotten.
func TestRejectedMovesAreNotMadeAgain(t *testing.T) {
	w, _ := walker(t, &column{features: NumMoveFeatures, scale: 1e4, index: position(t, MoveFeatureNames(), "work")}, nil)
	a, seen, rejections := w.adviser, map[uint64]bool{}, 0
	a.learn = func(Judged) {
		hash := a.moves[a.chosen].hash
		if seen[hash] {
			t.Fatal("a rejected move was judged again")
		}
		seen[hash] = true
	}
	for range 200 {
		w.step(1e-6, 1)
		if len(a.rejected) == 0 { // the replica has moved
			clear(seen)
		} else {
			rejections++
		}
	}
	if rejections < 100 {
		t.Errorf("%d rejections, too few for a test", rejections)
	}
}

// towardsBalance is a guide without state.
type towardsBalance struct{}

func (towardsBalance) Rank(x, score []float32) {
	for k := range score {
		score[k] = -x[k*NumMoveFeatures+12] // most_change
	}
}

// A guided step allocates nothing beside the timeline.
func TestGuidedStepAllocatesNothing(t *testing.T) {
	w, _ := walker(t, towardsBalance{}, nil)
	for range 2000 {
		w.step(0.01, 4)
	}
	w.adviser.timeline.update(w)
	w.adviser.age = 0
	if n := testing.AllocsPerRun(oldTimeline/2, func() { w.step(0.01, 4) }); n > 0.1 {
		t.Errorf("%v allocations a step", n)
	}
}
