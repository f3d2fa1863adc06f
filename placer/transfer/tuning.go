package transfer

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"placer/graph/unit"
	"placer/plan"
)

// tuning is a Place of a Tuner under way.
type tuning struct {
	Tuner
	view    *View
	pace    pace
	workers []*tuneWorker
	cells   *unit.Partition
	state   *TuneState
	elite   []*elite
	level   *tuneLevel // of the last step; nil before the first
	opening []Sample   // zero-shot
	tried   []int      // levels of the first step
}

// elite is a placement that is learned from.
type elite struct {
	Placed
	born  int
	trace *trace // at the present level
}

// begin makes the zero-shot samples, or takes up a state.
func (t Tuner) begin(ctx context.Context, w *View) (*tuning, error) {
	p := w.problem
	r := &tuning{Tuner: t, view: w, cells: p.Units.Levels[unit.Cell]}
	for k := range t.Config.Workers {
		x := &tuneWorker{evaluator: p.Evaluator, device: make([]uint8, p.Graph.NumOps())}
		if k > 0 {
			x.evaluator = p.Evaluator.Clone()
		}
		r.workers = append(r.workers, x)
	}
	r.pace = pace{clock: p.Clock, budget: p.Budget, rounds: t.Config.rounds(p.Graph.NumOps(), r.cells.NumUnits(), p.Machine.NumDevices())}
	if p.Clock != nil {
		r.pace.begin = p.Clock()
	}
	samples, err := t.Policy.ZeroShot(ctx, w, Placer{}.within(p.Budget))
	if err != nil {
		return nil, err
	}
	r.opening = samples
	for li := range w.scenes {
		if li != timeStep || slices.ContainsFunc(samples, func(x Sample) bool { return x.level == li }) {
			r.tried = append(r.tried, li)
		}
	}
	key, err := t.key(p)
	if err != nil {
		return nil, err
	}
	if t.From != nil {
		if err := r.restore(key); err != nil {
			return nil, err
		}
	} else {
		best := Best(samples)
		r.state = &TuneState{Key: key, Start: len(levels) - 1, Evaluations: len(samples), Best: r.placed(best.Device, best.Score)}
	}
	r.pace.from, r.pace.spent = r.state.Evaluations, r.state.Seconds
	return r, nil
}

// advance takes a step of k samples. When ctx ends in it, the state is as before.
func (r *tuning) advance(ctx context.Context, k int) (TuneStep, error) {
	at := r.state.Step
	if at == 0 && k >= fewest*len(r.tried) {
		return r.try(ctx, k)
	}
	if li := r.Config.level(at, r.state.Start); r.level == nil || r.level.index != li {
		r.enter(li)
	}
	all, entropy := r.sample(ctx, k)
	step := TuneStep{Step: at, Level: r.level.s.name, Best: math.Inf(1), Entropy: entropy}
	if ctx.Err() != nil {
		return step, ctx.Err()
	}
	r.note(&step, all)
	r.choose(all, r.pace.rounds.learned(at))
	r.learn()
	r.state.Evaluations += k
	r.state.Step++
	return step, nil
}

// enter goes to a level. What was learned at the one before arrives there as the
// placements that it was learned from, and so do those of the zero-shot samples
// made at this level.
func (r *tuning) enter(li int) {
	r.level = newTuneLevel(r.view.scenes[li], li, r.cells)
	for _, x := range r.opening {
		if x.level == li {
			r.elite = append(r.elite, &elite{Placed: r.placed(x.Device, x.Score), born: r.state.Step})
		}
	}
	for i, w := range r.workers {
		w.enter(r.Policy.net, r.level)
		if i == 0 {
			for _, x := range r.elite {
				x.trace = r.level.replay(w, x.Cells)
			}
		}
	}
	for range r.pace.rounds.opening {
		r.fit()
	}
}

// fit takes a step of the gradient on the elite.
func (r *tuning) fit() {
	r.level.fit(r.elite, float32(r.pace.rounds.rate), float32(r.Config.LinkRate))
}

// openingFits are the steps of the gradient with which a level begins: few, for
// the coarser level's best placements are to be a start and not the end. On large
// graphs with many logits six times as many were better (adr/0022).
const openingFits = 10

// try takes the first step, whose k samples are divided among the levels; among
// them is that of time steps if a zero-shot sample is by these. Where the best of
// all is one of cells or of time steps the run begins with these, elsewhere with
// the coarsest level, and with what was found there and at coarser ones.
func (r *tuning) try(ctx context.Context, k int) (TuneStep, error) {
	step := TuneStep{Step: r.state.Step, Level: "every level", Best: math.Inf(1)}
	found := make([][]*elite, len(r.view.scenes))
	tried := make([]*tuneLevel, len(r.view.scenes))
	start, least := 0, plan.Score{Seconds: math.Inf(1)}
	for _, li := range r.tried {
		r.elite = nil
		r.enter(li)
		all, entropy := r.sample(ctx, k/len(r.tried))
		if ctx.Err() != nil {
			r.elite, r.level = nil, nil
			return step, ctx.Err()
		}
		for _, x := range all {
			if least.Better(x.score()) {
				continue
			}
			start, least = li, x.score()
		}
		r.note(&step, all)
		step.Entropy += entropy / float64(len(r.tried))
		found[li], tried[li] = all, r.level
	}
	if start > 0 && start < timeStep {
		// What segments are better at in one round, chains find the way to in several.
		start = len(levels) - 1
	}
	r.elite, r.level = nil, tried[start]
	for _, w := range r.workers {
		w.enter(r.Policy.net, r.level)
	}
	var pool []*elite
	for li, all := range found {
		if within(li, start) {
			pool = append(pool, all...)
		}
	}
	for _, x := range r.opening {
		if within(x.level, start) {
			pool = append(pool, &elite{Placed: r.placed(x.Device, x.Score), born: r.state.Step})
		}
	}
	r.choose(pool, r.pace.rounds.learned(0))
	r.learn()
	r.state.Start = start
	r.state.Evaluations += step.Samples
	r.state.Step++
	return step, nil
}

// learn takes the gradient's steps on the elite.
func (r *tuning) learn() {
	for _, x := range r.elite {
		if x.trace == nil {
			x.trace = r.level.replay(r.workers[0], x.Cells)
		}
	}
	for range r.pace.rounds.fits {
		r.fit()
	}
}

// note enters samples into what is told of a step, and the best of them into the
// state.
func (r *tuning) note(step *TuneStep, all []*elite) {
	for _, x := range all {
		step.Samples++
		step.Mean += (x.Seconds - step.Mean) / float64(step.Samples)
		if x.score().Feasible() {
			step.Best = min(step.Best, x.Seconds)
		}
		if x.score().Better(r.state.score()) {
			r.state.Best = x.Placed
		}
	}
}

// draft is a placement before it is judged.
type draft struct {
	cells   []uint8 // [cells] device
	clock   float64 // when the policy's own schedule of it ends
	entropy float64 // mean of a decision
}

// sample makes the placements of a round and returns the k that were judged, those
// whose own schedules end soonest, with the mean entropy of a decision.
func (r *tuning) sample(ctx context.Context, k int) (all []*elite, entropy float64) {
	drafts := r.drafts(ctx, k*r.pace.rounds.made(r.state.Step, r.level.index))
	if ctx.Err() != nil {
		return nil, 0
	}
	for _, x := range drafts {
		entropy += x.entropy / float64(len(drafts))
	}
	slices.SortStableFunc(drafts, func(a, b draft) int { return cmp.Compare(a.clock, b.clock) })
	all = make([]*elite, k)
	var wait sync.WaitGroup
	for i, w := range r.workers {
		wait.Go(func() {
			for j := i; j < k && ctx.Err() == nil; j += len(r.workers) {
				r.spell(drafts[j].cells, w.device)
				score := w.evaluator.EvaluateFused(w.device, r.view.problem.Priority, r.view.problem.Fusion)
				all[j] = &elite{Placed: Placed{Cells: drafts[j].cells, Seconds: score.Seconds, Overflow: score.Overflow}, born: r.state.Step}
			}
		})
	}
	wait.Wait()
	return all, entropy
}

// drafts makes n placements. Each has a random stream of its own, so the number of
// workers does not matter.
func (r *tuning) drafts(ctx context.Context, n int) []draft {
	out := make([]draft, n)
	var wait sync.WaitGroup
	for i, w := range r.workers {
		wait.Go(func() {
			for lo := i * chunkOfSamples; lo < n && ctx.Err() == nil; lo += len(r.workers) * chunkOfSamples {
				hi := min(n, lo+chunkOfSamples)
				draws := make([]*tuneDraw, 0, hi-lo)
				for j := lo; j < hi; j++ {
					random := stream(r.view.problem.Seed, "finetune", uint64(r.state.Step)<<32|uint64(j))
					draws = append(draws, r.Config.draw(r.level, r.state.Step, random))
				}
				w.roll(r.level, draws)
				for j, x := range draws {
					s := w.e.states[j]
					cells := make([]uint8, len(r.level.cell))
					for c, u := range r.level.cell {
						cells[c] = uint8(s.device[u])
					}
					out[lo+j] = draft{cells, s.clock, x.entropy / float64(max(1, r.level.s.turns))}
				}
			}
		})
	}
	wait.Wait()
	return out
}

// chunkOfSamples are rolled side by side.
const chunkOfSamples = 16

// choose keeps the best of the round and of those before that are not too old, one
// of each time.
func (r *tuning) choose(all []*elite, most int) {
	for _, x := range r.elite {
		if r.state.Step-x.born <= oldestElite {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *elite) int {
		if a.score().Better(b.score()) {
			return -1
		}
		if b.score().Better(a.score()) {
			return 1
		}
		return cmp.Compare(b.born, a.born)
	})
	r.elite = r.elite[:0:0]
	for _, x := range all {
		if n := len(r.elite); n < most && (n == 0 || r.elite[n-1].score() != x.score()) {
			r.elite = append(r.elite, x)
		}
	}
}

// oldestElite is the number of rounds after which a placement is no longer learned
// from.
const oldestElite = 5

// placed describes a placement, [N], by cells.
func (r *tuning) placed(device []uint8, score plan.Score) Placed {
	x := Placed{Cells: make([]uint8, r.cells.NumUnits()), Seconds: score.Seconds, Overflow: score.Overflow}
	for c, ops := range r.cells.Ops {
		x.Cells[c] = device[ops[0]]
	}
	return x
}

// devices returns the placement of cells, [N].
func (r *tuning) devices(cells []uint8) []uint8 {
	device := make([]uint8, len(r.cells.Of))
	r.spell(cells, device)
	return device
}

// spell writes the placement of cells into device, [N].
func (r *tuning) spell(cells, device []uint8) {
	for i, c := range r.cells.Of {
		device[i] = cells[c]
	}
}
