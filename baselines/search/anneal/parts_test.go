package anneal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph/unit"
	"placer/placer/problem"
	"placer/plan"
)

// unrolled is a recurrent network of two layers and four time steps, training.
func unrolled(t *testing.T) *plan.Problem {
	t.Helper()
	whole, err := problem.Workload("rnnlm:layers=2,unroll=4,hidden=64,vocab=200", "p100", 3, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &whole.Problem
}

// splitPlacement puts cells at random, and one op of every tenth cell that has several units of
// ops elsewhere. It returns how many it has split.
func splitPlacement(p *plan.Problem, r *rand.Rand) (device []uint8, split int) {
	devices := p.Machine.NumDevices()
	device = make([]uint8, p.Graph.NumOps())
	ops := p.Units.Levels[unit.Op]
	for u, members := range p.Units.Levels[unit.Cell].Ops {
		d := uint8(r.IntN(devices))
		for _, i := range members {
			device[i] = d
		}
		last := ops.Ops[ops.Of[members[len(members)-1]]]
		if u%10 == 0 && len(last) < len(members) {
			for _, i := range last {
				device[i] = (d + 1) % uint8(devices)
			}
			split++
		}
	}
	return device, split
}

// What lies apart is a decision of its own: decisions are a partition of the ops into those that
// share a cell and a device, each of the group and the phase of its cell, and give the placement
// back.
func TestApart(t *testing.T) {
	p := unrolled(t)
	r := rand.New(rand.NewPCG(1, 1))
	device, split := splitPlacement(p, r)
	cells := within(p, unit.Cell, unit.Chain)
	votes := make([]float64, p.Machine.NumDevices())
	x := cells.apart(p, device, votes)
	if got := len(x.seconds) - len(cells.seconds); split < 3 || got != split {
		t.Fatalf("%d decisions more for %d cells on two devices", got, split)
	}
	back := make([]uint8, len(device))
	x.expand(x.decisions(device, votes), back)
	if !slices.Equal(back, device) {
		t.Error("the decisions are another placement than they were read off")
	}
	seen, line := make([]bool, len(device)), map[int32]bool{}
	for _, u := range cells.line {
		line[u] = true
	}
	for u, ops := range x.fine.Ops {
		sum := 0.0
		for _, i := range ops {
			if seen[i] || x.fine.Of[i] != int32(u) || device[i] != device[ops[0]] || cells.fine.Of[i] != cells.fine.Of[ops[0]] {
				t.Fatalf("op %d of decision %d", i, u)
			}
			seen[i] = true
			sum += x.opSeconds[i]
		}
		cell := cells.fine.Of[ops[0]]
		if x.groupOf[u] != cells.groupOf[cell] || x.group[x.groupOf[u]][x.place[u]] != int32(u) {
			t.Errorf("decision %d of cell %d is in place %d of group %d", u, cell, x.place[u], x.groupOf[u])
		}
		if slices.Contains(x.line, int32(u)) != line[cell] || sum != x.seconds[u] {
			t.Errorf("decision %d of cell %d: %g seconds, in the forward pass %v", u, cell, x.seconds[u], !line[cell])
		}
	}
	if slices.Contains(seen, false) {
		t.Error("an op belongs to no decision")
	}
}

// A placement of cells has nothing apart, and one that has most cells on several devices is
// rounded to cells.
func TestNothingApart(t *testing.T) {
	p := unrolled(t)
	cells := within(p, unit.Cell, unit.Chain)
	votes := make([]float64, p.Machine.NumDevices())
	if cells.apart(p, make([]uint8, p.Graph.NumOps()), votes) != cells {
		t.Error("parts of a placement on one device")
	}
	scattered := make([]uint8, p.Graph.NumOps())
	for u, ops := range p.Units.Levels[unit.Op].Ops {
		for _, i := range ops {
			scattered[i] = uint8(u % p.Machine.NumDevices())
		}
	}
	if cells.apart(p, scattered, votes) != cells {
		t.Error("parts of a placement of ops")
	}
}

// recorder notes the placements that it judges.
type recorder struct {
	plan.Evaluator
	seen *[][]uint8
}

func (r recorder) Evaluate(d plan.Decision) plan.Score {
	*r.seen = append(*r.seen, slices.Clone(d.Device))
	return r.Evaluator.Evaluate(d)
}

func (r recorder) Clone() plan.Evaluator { return recorder{r.Evaluator.Clone(), r.seen} }

// A fine run's walk over cells begins with the plan as it is; another one's with every cell
// where most of it is.
func TestFineBeginsWithThePlan(t *testing.T) {
	p := unrolled(t)
	device, _ := splitPlacement(p, rand.New(rand.NewPCG(2, 2)))
	p.Budget, p.Moves = plan.Budget{Evaluations: 400}, nil
	for _, a := range []Placer{{Cool: 4}, {Cool: 4, Fine: true}, {Cool: 4, Fine: true, Recreate: true}} {
		q := *p
		var seen [][]uint8
		q.Evaluator = recorder{p.Evaluator, &seen}
		a.Starts, a.Workers = [][]uint8{device}, 1
		if _, err := a.Place(t.Context(), &q); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seen[0], device) {
			t.Fatal("the first placement judged is not the start")
		}
		if slices.Equal(seen[1], device) != a.Fine {
			t.Errorf("fine %v, recreate %v: the walk begins with the plan %v", a.Fine, a.Recreate, !a.Fine)
		}
	}
}

// Ops have what the fewer of them had their turn takes away, and no less than without.
func TestFineStages(t *testing.T) {
	share := func(stages []stage, ops bool) (x, all float64) {
		for _, s := range stages {
			if all += s.share; s.ops == ops {
				x += s.share
			}
		}
		return x, all
	}
	before, whole := share(defaultStages[2:], true)
	last := before / whole
	for _, turns := range []float64{0, fullTurns / 10, fullTurns / 2, fullTurns, 7} {
		stages := withFineStages(defaultStages[2:], turns)
		ops, all := share(stages, true)
		if ops/all < last {
			t.Errorf("%g turns: ops have %.3f of the time, with fewer %.3f", turns, ops/all, last)
		}
		if last = ops / all; turns >= fullTurns && math.Abs(last-0.6) > 1e-12 {
			t.Errorf("%g turns: ops have %.3f of the time, want three fifths", turns, last)
		}
		if s := stages[len(stages)-1]; !s.ops || s.alike {
			t.Errorf("%g turns: ends with %+v", turns, s)
		}
	}
}

// A settled walk goes nowhere that it could not come to by moves that it takes.
func TestSettled(t *testing.T) {
	p := unrolled(t)
	cells := within(p, unit.Cell, unit.Chain)
	for _, settled := range []bool{true, false} {
		w := newReplica(cells, exactObjective(p, cells).clone(), p.Machine.NumDevices(), rand.NewPCG(3, 3))
		w.settled = settled
		w.start(cells.decisions(p.Units.Blocks(p.Evaluator.OpSeconds(0), p.Machine.NumDevices()), make([]float64, p.Machine.NumDevices())))
		over := 0
		for range 4000 {
			before := w.cost
			w.stale = patience*len(w.now) + 1
			w.step(1e-9, 4) // takes nothing that is worse
			if w.cost > before {
				over++
			}
		}
		if (over > 0) == settled {
			t.Errorf("settled %v: it became worse %d times", settled, over)
		}
	}
}
