// Package propose owns searches that are told where to look: something proposes
// distributions for the keys of a graph's chromosomes, BRKGA draws its mutants
// from them (Paliwal et al., ICLR 2020, 4.1). REGAL's policy is such a proposer,
// and so are GAS and fixed distributions found by a grid search.
package propose

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/sched"
	"placer/internal/words"
)

// Proposer proposes for a graph and an objective. What it evaluates to do so
// counts against the budget.
type Proposer interface {
	Propose(ctx context.Context, p *sched.Problem, o sched.Objective, r *rand.Rand) (*Proposal, error)
}

// Proposal is how to search a graph.
type Proposal struct {
	Distributions brkga.Distributions
	EliteBias     float64 // 0: the search's own
	Pin           int32   // op held on the first device, -1 for none
	Evaluations   int     // spent on proposing
}

// Fixed proposes the same beta distribution for all affinities and scheduling
// priorities of every graph; priorities of transfers stay uniform, as with REGAL.
type Fixed struct{ Shape brkga.Shape }

// Propose implements Proposer.
func (f Fixed) Propose(_ context.Context, p *sched.Problem, _ sched.Objective, _ *rand.Rand) (*Proposal, error) {
	keys := make([]brkga.Shape, p.N()*(p.D()+1))
	for i := range keys {
		keys[i] = f.Shape
	}
	return &Proposal{Distributions: brkga.Beta{Keys: keys}, Pin: -1}, nil
}

// Search asks q and runs BRKGA with c on what it proposes, with what is left of
// evaluations. e holds the last schedule judged; decode Best to get the found
// one. Result.Evaluations counts those of the proposer too.
func Search(ctx context.Context, e *sched.Evaluator, q Proposer, c brkga.Config, evaluations int, r *rand.Rand) (*brkga.Result, error) {
	x, err := q.Propose(ctx, e.Problem(), e.Objective(), r)
	if err != nil {
		return nil, err
	}
	left := evaluations - x.Evaluations
	if left < 1 {
		return nil, fmt.Errorf("propose: the proposal took %d of %s", x.Evaluations, words.Count(evaluations, "evaluation", "evaluations"))
	}
	if x.EliteBias != 0 {
		c.EliteBias = x.EliteBias
	}
	e.Pin(x.Pin)
	defer e.Pin(-1)
	res := brkga.Run(ctx, e, x.Distributions, c, brkga.Budget{Evaluations: left}, r)
	e.Decode(res.Best) // while the pin holds
	res.Evaluations += x.Evaluations
	return res, nil
}

// Heaviest returns the op that takes most time, or for the peak-memory task most
// memory, the first of equals: REGAL pins it (A.2).
func Heaviest(p *sched.Problem, o sched.Objective) int32 {
	best, most := int32(0), -1.0
	for i := range int32(p.N()) {
		x := p.Time()[i]
		if o == sched.PeakMemory {
			x = float64(p.Memory(i) + p.Internal(i))
		}
		if x > most {
			best, most = i, x
		}
	}
	return best
}
