package anneal

import (
	"context"
	"math/rand/v2"

	"placer/plan"
)

// Exact anneals placements of a problem by its own objective, cells at a time. Where the
// coarsened graph is much smaller, moves are looked at there first, and those that make its
// step much longer are not evaluated. It is not for use by several goroutines at once.
type Exact struct{ shortener }

// NewExact returns p's.
func NewExact(p *plan.Problem) (*Exact, error) {
	cells := new(Shared).cellsOf(p)
	x := &Exact{newShortener(p, cells, exactObjective(p, cells))}
	var err error
	x.screen, err = newScreen(p)
	return x, err
}

// Looked returns how many moves x has seen on the coarsened graph so far.
func (x *Exact) Looked() int {
	if x.screen == nil {
		return 0
	}
	return x.screen.looked
}

// Shorten anneals a placement, [N], for at most so many evaluations, by moves of up to twice
// run decisions of a group. It returns the best that it comes to, [N], its score, and how many
// evaluations it took; one is that of the placement itself, with every cell on the device of
// most of its time. It ends early when ctx does.
func (x *Exact) Shorten(ctx context.Context, device []uint8, evaluations, run int, source *rand.PCG) ([]uint8, plan.Score, int) {
	w := x.shorten(ctx, device, evaluations, run, source)
	return x.expanded(w.best), w.bestAt, w.spent
}
