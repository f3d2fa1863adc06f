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
	Tasks    plan.Tasks // that the moves decide on
	Families []string
	Moves
}

// Of the moves that bring nothing one in rareness is kept.
const rareness = 3

// Collect searches problem index under a seed, as corpus.Draw draws it, by annealing of
// placement alone or of all tasks within a number of evaluations, and returns the moves
// judged, of all tasks those of the walk that decides on all together. The outcome depends
// on the arguments alone.
func Collect(ctx context.Context, tasks plan.Tasks, seed uint64, index, evaluations int) (*Sample, error) {
	r, drawn, err := corpus.Draw(ctx, seed, index)
	if err != nil {
		return nil, err
	}
	p := drawn.Problem
	p.Tasks = tasks
	p.Budget = plan.Budget{Evaluations: evaluations}
	p.Seed = plan.StreamSeed(seed, fmt.Sprintf("moves %d", index))
	s := &Sample{Tasks: tasks, Families: r.Families}
	random := rand.New(rand.NewPCG(p.Seed, 1))
	learn := func(j anneal.Judged) {
		if j.Gain > 0 || random.IntN(rareness) == 0 {
			s.add(j)
		}
	}
	a := anneal.Placer{Workers: 1}
	if tasks == plan.Place {
		p.Fusion = nil
		p.Units = p.Units.WithPartialGradients(p.Graph, p.Evaluator.OpSeconds(0))
		a.Learn = learn
	} else {
		a.JointLearn = learn
	}
	if _, err := a.Place(ctx, &p); err != nil {
		return nil, fmt.Errorf("problem %d: %w", index, err)
	}
	if err := ctx.Err(); err != nil { // a search that was stopped is not that of the arguments
		return nil, err
	}
	return s, nil
}
