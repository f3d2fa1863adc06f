package anneal

import (
	"context"
	"math"
	"math/rand/v2"

	"placer/graph/unit"
	"placer/plan"
)

// Sketch judges and anneals placements of a problem on the coarsened graph of its cells, the
// fine one where that saves enough: no step of the problem is simulated. It is not for use by
// several goroutines at once.
type Sketch struct {
	cells     *neighbourhood
	objective *objective
	device    []uint8   // [cells] what the objective holds
	votes     []float64 // [D] scratch
	nodes     int       // of the coarsened graph
	steps     int       // coarsened steps so far
}

// NewSketch returns p's; nil where p is not judged by its step, or where the coarsened graph
// is hardly smaller than its own, so that a step of it would be as good as one simulated.
func NewSketch(p *plan.Problem) (*Sketch, error) {
	c, err := newCoarse(p, unit.CoarsenFinely, nil)
	if err == nil && c.proto == nil {
		c, err = newCoarse(p, unit.Coarsen, nil)
	}
	if err != nil || c.proto == nil {
		return nil, err
	}
	cells := new(Shared).cellsOf(p)
	return &Sketch{cells: cells, objective: c.proto.clone(), device: make([]uint8, len(cells.seconds)), votes: make([]float64, p.Machine.NumDevices()), nodes: c.nodes}, nil
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

// A placement that is good already is improved cold, and by short runs of a chain.
var sketchStage = stage{coarse: true, run: 16, hot: 0.001, end: 0.0001}

// Shorten anneals a placement, [N], for so many coarsened steps and returns the best that it
// comes to, [N]. It ends early when ctx does.
func (x *Sketch) Shorten(ctx context.Context, device []uint8, steps int, source *rand.PCG) []uint8 {
	w := newReplica(x.cells, x.objective, len(x.votes), source)
	w.start(x.cells.decisions(device, x.votes))
	for idle := 0; idle < idleMoves && w.spent < steps && ctx.Err() == nil; idle++ {
		before := w.spent
		w.step(sketchStage.temperature(float64(before)/float64(steps)), sketchStage.run)
		if w.spent > before {
			idle = 0
		}
	}
	copy(x.device, w.now)
	x.steps += w.spent
	out := make([]uint8, len(device))
	x.cells.expand(w.best, out)
	return out
}
