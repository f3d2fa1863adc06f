package anneal

import (
	"context"
	"math"
	"math/rand/v2"

	"placer/plan"
)

// Sketch judges and anneals placements of a problem on the coarsened graph of its cells, the
// fine one where that saves enough: no step of the problem is simulated. It is not for use by
// several goroutines at once.
type Sketch struct {
	shortener
	device []uint8 // [cells] what the objective holds
	nodes  int     // of the coarsened graph
	steps  int     // coarsened steps so far
}

// NewSketch returns p's; nil where p is not judged by its step, or where the coarsened graph
// is hardly smaller than its own, so that a step of it would be as good as one simulated.
func NewSketch(p *plan.Problem) (*Sketch, error) {
	c, err := newNearCoarse(p)
	if err != nil || c.proto == nil {
		return nil, err
	}
	x := newShortener(p, new(Shared).cellsOf(p), c.proto)
	return &Sketch{shortener: x, device: make([]uint8, len(x.cells.seconds)), nodes: c.nodes}, nil
}

// Note says how much x was used, as the notes of a table have it.
func (x *Sketch) Note() string { return coarsenedNote(x.steps, x.nodes) }

// Seconds returns the coarsened step of a placement, [N], with every cell on the device of
// most of its time; what does not fit counts as longer.
func (x *Sketch) Seconds(device []uint8) float64 {
	for u, d := range x.cells.decisions(device, x.votes) {
		if x.device[u] != d {
			x.objective.set(int32(u), d)
			x.device[u] = d
		}
	}
	_, cost := x.objective.evaluate(math.Inf(1))
	x.steps++
	return cost
}

// sketchRun is short: what is good already is improved by small moves.
const sketchRun = 16

// Shorten anneals a placement, [N], for so many coarsened steps and returns the best that it
// comes to, [N]. It ends early when ctx does.
func (x *Sketch) Shorten(ctx context.Context, device []uint8, steps int, source *rand.PCG) []uint8 {
	w := x.shorten(ctx, device, steps, sketchRun, source)
	copy(x.device, w.now)
	x.steps += w.spent
	return x.expanded(w.best)
}
