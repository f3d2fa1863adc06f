package anneal

import (
	"math"

	"placer/plan"
)

// screen looks at moves on the coarsened graph of cells, before they are evaluated. One that
// makes the coarsened step longer by more than screenMargin and the temperature would hardly
// ever be taken, and is not evaluated (delayed acceptance; Christen and Fox, J. Comput. Graph.
// Stat. 14, 2005, without the correction, for nothing is sampled here). The coarsened step of
// a placement may be far from its step, but what a move changes in the one is near what it
// changes in the other (docs/adr/0103-moves-seen-on-the-coarsened-graph.md).
type screen struct {
	objective *objective // on the coarsened graph, of the same decisions
	cost      float64    // coarsened, of where the replica is
	next      float64    // of the move that has passed
	looked    int        // moves seen so far
}

const screenMargin = 0.01

// newScreen returns that of p's cells; nil where p is not judged by its step, has kernels
// that its moves may change, or a coarsened step would be hardly quicker than one of p.
func newScreen(p *plan.Problem) (*screen, error) {
	if p.Fusion != nil {
		return nil, nil
	}
	c, err := newNearCoarse(p)
	if err != nil || c.proto == nil {
		return nil, err
	}
	return &screen{objective: c.proto.clone()}, nil
}

// moved says that the replica is at now, [decisions].
func (x *screen) moved(now []uint8) {
	for u, d := range now {
		x.objective.set(int32(u), d)
	}
	_, x.cost = x.objective.evaluate(math.Inf(1))
}

// passes reports whether the move planned is worth an evaluation; now, [decisions], are all
// decisions with it made. If it is, taken or refused is to follow.
func (x *screen) passes(move []changed, now []uint8, temperature float64) bool {
	for _, c := range move {
		x.objective.set(c.u, now[c.u])
	}
	limit := x.cost * (1 + screenMargin + temperature)
	_, x.next = x.objective.evaluate(limit)
	x.looked++
	if x.next <= limit {
		return true
	}
	x.refused(move)
	return false
}

// taken says that the move that has passed is made.
func (x *screen) taken() { x.cost = x.next }

// refused says that the move is not made.
func (x *screen) refused(move []changed) {
	for k := len(move) - 1; k >= 0; k-- {
		x.objective.set(move[k].u, move[k].old)
	}
}
