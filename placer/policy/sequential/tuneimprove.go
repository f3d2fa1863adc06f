package sequential

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"placer/baselines/search/anneal"
	"placer/internal/faults"
)

// Improvement is what a step of fine-tuning makes of its best placements before it learns
// from them, as expert iteration does (T. Anthony and others, NeurIPS 2017): annealing
// shortens them by evaluations. Steps of the second half do, for where what is improved before
// the policy has sampled widely is learned from, it is all that is found from there
// (docs/adr/0086-fine-tuning-by-improved-samples.md). The zero value improves nothing.
type Improvement struct {
	// Placements is the number of those that are improved in a step: by turns of the best
	// so far, improved ones among them, and of the best that the step sampled.
	Placements int
	Share      float64 // of a step's evaluations, those that improve
}

// runs are those of annealing's moves, of which each placement that is improved has one.
var runs = []int{4, 16, 64, anneal.WholeGroups}

// fewestMoves is the number of evaluations below which a placement is not improved.
const fewestMoves = 8

func (c Improvement) validate() error {
	var errs faults.List
	errs.If(c.Placements < 0 || !(c.Share >= 0) || !(c.Share < 1), "finetune: %d placements to improve by a share of %g of the evaluations, want none or more and 0 to below 1", c.Placements, c.Share)
	return errors.Join(errs...)
}

// moves returns how many of k evaluations each placement that is improved has.
func (c Improvement) moves(k int) int {
	if c.Placements == 0 {
		return 0
	}
	if n := int(c.Share*float64(k)) / c.Placements; n >= fewestMoves {
		return n
	}
	return 0
}

// open improves the best zero-shot samples before the first step, by as many evaluations as
// a late step has for it. What comes of them is a plan sooner than steps find one as good; it
// is not learned from, for the reason that Improvement gives.
func (r *tuning) open(ctx context.Context) error {
	moves := r.improvement.moves(r.pace.samples(r.state))
	improved, err := r.improve(ctx, r.zeroShotElite(func(level) bool { return true }), moves)
	var opened TuneStep
	for _, x := range improved {
		r.keep(&opened, x)
	}
	r.pace.from = r.state.Evaluations // moves take other times than samples
	return err
}

// improvedOne is what comes of a placement, and what it took.
type improvedOne struct {
	*elite
	evaluations int
	looked      int // moves seen on the coarsened graph
	err         error
}

// improve improves the best of a step's samples and of the elite, and returns what comes of
// them. When ctx ends in it, that is what there is by then.
func (r *tuning) improve(ctx context.Context, sampled []*elite, moves int) (improved []*elite, err error) {
	if moves == 0 || len(sampled) == 0 {
		return nil, nil
	}
	fresh, best := ranked(sampled), ranked(append(slices.Clone(sampled), r.elite...))
	made := make([]improvedOne, r.improvement.Placements)
	r.each(ctx, len(made), 1, func(w *tuneWorker, i, _ int) {
		from := best
		if i%2 == 1 {
			from = fresh
		}
		random := stream(r.features.problem.Seed, "improve", uint64(r.state.Step)<<32|uint64(i))
		made[i] = r.improveOne(ctx, w, from[min(i/2, len(from)-1)], moves, random)
	})
	for _, x := range made {
		if x.err != nil {
			return nil, x.err
		}
		if x.elite != nil {
			improved = append(improved, x.elite)
			r.state.Evaluations += x.evaluations
			r.state.Looked += x.looked
		}
	}
	return improved, ctx.Err()
}

// improveOne anneals x by at most so many evaluations.
func (r *tuning) improveOne(ctx context.Context, w *tuneWorker, x *elite, moves int, random *rand.Rand) improvedOne {
	if w.exact == nil {
		var err error
		if w.exact, err = anneal.NewExact(r.problem); err != nil {
			return improvedOne{err: err}
		}
	}
	r.expand(x.Cells, w.device)
	run := runs[random.IntN(len(runs))]
	before := w.exact.Looked()
	device, score, n := w.exact.Shorten(ctx, w.device, moves, run, rand.NewPCG(random.Uint64(), random.Uint64()))
	y := &elite{kept: kept{placement{r.cellsOf(device), score.Value, score.Overflow}, r.state.Step}}
	return improvedOne{elite: y, evaluations: n, looked: w.exact.Looked() - before}
}

// lookedNote says how many moves were seen on the coarsened graph; empty where none were.
func (r *tuning) lookedNote() string {
	if r.state.Looked == 0 {
		return ""
	}
	return fmt.Sprintf("improvements saw %d moves on the coarsened graph, and evaluated those that did not make its step much longer", r.state.Looked)
}

// ranked returns all in order of their scores, one of each.
func ranked(all []*elite) []*elite {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *elite) int { return a.score().Compare(b.score()) })
	return slices.CompactFunc(all, func(a, b *elite) bool { return a.score() == b.score() })
}
