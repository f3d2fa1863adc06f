package transfer

import (
	"cmp"
	"context"
	"fmt"
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
	r.pace = pace{clock: p.Clock, budget: p.Budget, steps: t.Config.Steps, most: t.Config.samples(p.Graph.NumOps())}
	if p.Clock != nil {
		r.pace.begin = p.Clock()
	}
	samples, err := t.Policy.ZeroShot(ctx, w, Placer{}.within(p.Budget))
	if err != nil {
		return nil, err
	}
	r.opening = samples
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
		r.state = &TuneState{Key: key, Evaluations: len(samples), Best: r.placed(best.Device, best.Score)}
	}
	r.pace.from, r.pace.spent = r.state.Evaluations, r.state.Seconds
	return r, nil
}

// advance takes a step of k samples. When ctx ends in it, the state is as before.
func (r *tuning) advance(ctx context.Context, k int) (TuneStep, error) {
	c, at := r.Config, r.state.Step
	if li := c.level(at); r.level == nil || r.level.index != li {
		r.enter(li)
	}
	all, entropy := r.sample(ctx, k)
	step := TuneStep{Step: at, Samples: k, Level: fmt.Sprint(r.level.s.level), Best: math.Inf(1), Entropy: entropy}
	if ctx.Err() != nil {
		return step, ctx.Err()
	}
	for _, x := range all {
		step.Mean += x.Seconds / float64(k)
		if x.score().Feasible() {
			step.Best = min(step.Best, x.Seconds)
		}
		if x.score().Better(r.state.score()) {
			r.state.Best = x.Placed
		}
	}
	r.choose(all)
	for _, x := range r.elite {
		if x.trace == nil {
			x.trace = r.level.replay(r.workers[0], x.Cells)
		}
	}
	for range c.Fits {
		r.level.fit(r.elite, float32(c.Rate), float32(c.LinkRate))
	}
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
	for range openingFits {
		r.level.fit(r.elite, float32(r.Config.Rate), float32(r.Config.LinkRate))
	}
}

// openingFits are the steps of the gradient with which a level begins: few, for
// the coarser level's best placements are to be a start and not the end.
const openingFits = 10

// sample makes the placements of a round, [k], and returns the mean entropy of a
// decision. Each has a random stream of its own, so the number of workers does not
// matter.
func (r *tuning) sample(ctx context.Context, k int) (all []*elite, entropy float64) {
	all = make([]*elite, k)
	entropies := make([]float64, k)
	var wait sync.WaitGroup
	for i, w := range r.workers {
		wait.Go(func() {
			for lo := i * chunkOfSamples; lo < k && ctx.Err() == nil; lo += len(r.workers) * chunkOfSamples {
				hi := min(k, lo+chunkOfSamples)
				draws := make([]*tuneDraw, 0, hi-lo)
				for j := lo; j < hi; j++ {
					random := stream(r.view.problem.Seed, "finetune", uint64(r.state.Step)<<32|uint64(j))
					draws = append(draws, r.Config.draw(r.level, r.state.Step, random))
				}
				w.roll(r.level, draws)
				for j, x := range draws {
					w.e.placement(j, w.device)
					score := w.evaluator.EvaluateFused(w.device, r.view.problem.Priority, r.view.problem.Fusion)
					all[lo+j] = &elite{Placed: r.placed(w.device, score), born: r.state.Step}
					entropies[lo+j] = x.entropy / float64(max(1, r.level.s.turns))
				}
			}
		})
	}
	wait.Wait()
	for _, h := range entropies {
		entropy += h / float64(k)
	}
	return all, entropy
}

// chunkOfSamples are rolled side by side.
const chunkOfSamples = 16

// choose keeps the best of the round and of those before that are not too old, one
// of each time.
func (r *tuning) choose(all []*elite) {
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
		if n := len(r.elite); n < r.Config.Elite && (n == 0 || r.elite[n-1].score() != x.score()) {
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
	for i, c := range r.cells.Of {
		device[i] = cells[c]
	}
	return device
}
