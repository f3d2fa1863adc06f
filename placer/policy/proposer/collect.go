package proposer

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/search/anneal"
	"placer/placer/corpus"
	"placer/plan"
)

// Moves are moves of searches that were judged, [M].
type Moves struct {
	X    []float32 // [M,F] features
	Gain []float32 // [M] share of the step that the move saved; 0: none
}

// add adds a move.
func (d *Moves) add(j anneal.Judged) {
	d.X = append(d.X, j.Features...)
	d.Gain = append(d.Gain, float32(j.Gain))
}

// Sample is what is learned from one problem: the moves of a search by chance.
type Sample struct {
	Families []string
	Moves
}

// Of the moves that bring nothing one in rareness is kept.
const rareness = 3

// Collect searches problem index under a seed, as corpus.Draw draws it, by annealing of
// placement alone within a number of evaluations, and returns the moves judged. The
// outcome depends on the arguments alone.
func Collect(ctx context.Context, seed uint64, index, evaluations int) (*Sample, error) {
	r, drawn, err := corpus.Draw(ctx, seed, index)
	if err != nil {
		return nil, err
	}
	p := drawn.Problem
	p.Tasks, p.Fusion = plan.Place, nil
	p.Units = p.Units.WithPartialGradients(p.Graph, p.Evaluator.OpSeconds(0))
	p.Budget = plan.Budget{Evaluations: evaluations}
	p.Seed = plan.StreamSeed(seed, fmt.Sprintf("moves %d", index))
	s := &Sample{Families: r.Families}
	random := rand.New(rand.NewPCG(p.Seed, 1))
	a := anneal.Placer{Workers: 1, Learn: func(j anneal.Judged) {
		if j.Gain > 0 || random.IntN(rareness) == 0 {
			s.add(j)
		}
	}}
	if _, err := a.Place(ctx, &p); err != nil {
		return nil, fmt.Errorf("problem %d: %w", index, err)
	}
	if err := ctx.Err(); err != nil { // a search that was stopped is not that of the arguments
		return nil, err
	}
	return s, nil
}
