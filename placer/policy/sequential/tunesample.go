package sequential

import (
	"cmp"
	"context"
	"slices"

	"placer/internal/parallel"
	"placer/plan"
)

// candidate is a placement before it is evaluated.
type candidate struct {
	cells   []uint8 // [cells] device
	clock   float64 // when the policy's own schedule of it ends, in seconds
	entropy float64 // mean of a decision
}

// sample makes the placements of a round and returns the k that were evaluated, those
// whose own schedules end soonest, with the mean entropy of a decision. The error is
// ctx's.
func (r *tuning) sample(ctx context.Context, k int) (all []*elite, entropy float64, err error) {
	made := r.candidates(ctx, k*r.pace.made(r.state.Step, r.logits.level))
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	for _, x := range made {
		entropy += x.entropy / float64(len(made))
	}
	slices.SortStableFunc(made, func(a, b candidate) int { return cmp.Compare(a.clock, b.clock) })
	all = make([]*elite, k)
	r.each(ctx, k, 1, func(w *tuneWorker, j, _ int) {
		r.expand(made[j].cells, w.device)
		score := w.evaluator.Evaluate(r.problem.Complete(plan.Decision{Device: w.device}))
		all[j] = &elite{kept: kept{placement{made[j].cells, score.Value, score.Overflow}, r.state.Step}}
	})
	return all, entropy, ctx.Err()
}

// candidates makes n placements. Each has a random stream of its own, so the number of
// workers does not matter.
func (r *tuning) candidates(ctx context.Context, n int) []candidate {
	out := make([]candidate, n)
	r.each(ctx, n, r.pace.abreast, func(w *tuneWorker, lo, hi int) {
		var proposals []*proposal
		for j := lo; j < hi; j++ {
			random := stream(r.features.problem.Seed, "finetune", uint64(r.state.Step)<<32|uint64(j))
			proposals = append(proposals, r.pace.propose(r.logits, r.state.Step, random))
		}
		w.roll(r.logits, proposals)
		for j, x := range proposals {
			s := w.rollouts.states[j]
			cells := make([]uint8, len(r.logits.cell))
			for c, u := range r.logits.cell {
				cells[c] = uint8(s.device[u])
			}
			out[lo+j] = candidate{cells, s.clock, x.entropy / float64(max(1, r.logits.s.decisions))}
		}
	})
	return out
}

// each divides 0 to n among the workers, size at a time, until ctx ends.
func (r *tuning) each(ctx context.Context, n, size int, do func(w *tuneWorker, lo, hi int)) {
	var wait parallel.Group
	for i, w := range r.workers {
		wait.Go(func() {
			for lo := i * size; lo < n && ctx.Err() == nil; lo += len(r.workers) * size {
				do(w, lo, min(n, lo+size))
			}
		})
	}
	wait.Wait()
}
