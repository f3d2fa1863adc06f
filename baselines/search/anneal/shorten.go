package anneal

import (
	"context"
	"math/rand/v2"

	"placer/plan"
)

// WholeGroups is a length of a run that moves whole chains, layers and the like at once.
const WholeGroups = whole

// A placement that is good already is improved cold.
const (
	shortenHot = 0.001
	shortenEnd = 0.0001
)

// shortener anneals placements of cells that are good already.
type shortener struct {
	cells     *neighbourhood
	objective *objective
	screen    *screen   // nil: none
	votes     []float64 // [D] scratch
}

func newShortener(p *plan.Problem, cells *neighbourhood, proto *objective) shortener {
	return shortener{cells: cells, objective: proto.clone(), votes: make([]float64, p.Machine.NumDevices())}
}

// shorten anneals a placement, [N], for so many evaluations. It returns the replica that did,
// where it ended.
func (x *shortener) shorten(ctx context.Context, device []uint8, steps, run int, source *rand.PCG) *replica {
	s := stage{run: run, hot: shortenHot, end: shortenEnd}
	w := newReplica(x.cells, x.objective, len(x.votes), source)
	w.screen = x.screen
	w.start(x.cells.decisions(device, x.votes))
	for idle := 0; idle < idleMoves && w.spent < steps && ctx.Err() == nil; idle++ {
		before := w.spent
		w.step(s.temperature(float64(before)/float64(steps)), run)
		if w.spent > before {
			idle = 0
		}
	}
	return w
}

// expanded returns the placement of decisions, [N].
func (x *shortener) expanded(decisions []uint8) []uint8 {
	out := make([]uint8, len(x.cells.fine.Of))
	x.cells.expand(decisions, out)
	return out
}
