package anneal

import (
	"context"
	"math/rand/v2"

	"placer/plan"
)

// Exact anneals placements of a problem by its own objective, cells at a time: every move is
// an evaluation. It is not for use by several goroutines at once.
type Exact struct{ shortener }

// NewExact returns p's.
func NewExact(p *plan.Problem) *Exact {
	cells := new(Shared).cellsOf(p)
	return &Exact{newShortener(p, cells, exactObjective(p, cells))}
}

// Shorten anneals a placement, [N], for at most so many evaluations, by moves of up to twice
// run decisions of a group. It returns the best that it comes to, [N], its score, and how many
// evaluations it took; one is that of the placement itself, with every cell on the device of
// most of its time. It ends early when ctx does.
func (x *Exact) Shorten(ctx context.Context, device []uint8, evaluations, run int, source *rand.PCG) ([]uint8, plan.Score, int) {
	w := x.shorten(ctx, device, evaluations, run, source)
	return x.expanded(w.best), w.bestAt, w.spent
}
