package anneal

import (
	"math"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

// objective evaluates decisions: it knows the ops of each and the evaluator of their
// graph, the problem's own or a coarsened one.
type objective struct {
	penalty
	evaluator plan.Evaluator
	// moves holds the present decisions and evaluates them in place of evaluator; nil
	// where newMoves is.
	moves    plan.Moves
	newMoves func() plan.Moves
	given    plan.Decision  // priority and fusion
	device   []uint8        // [ops]
	members  [][]graph.OpID // [decisions] ops; shared
	share    float64        // cost of an evaluation in evaluations of the problem
	heat     float64        // factor of temperatures
}

// clone returns an objective for another goroutine.
func (a *objective) clone() *objective {
	b := *a
	b.device = slices.Clone(a.device)
	if b.newMoves == nil {
		b.evaluator = a.evaluator.Clone()
		return &b
	}
	b.moves = b.newMoves()
	b.moves.Reset(b.given.Or(plan.Decision{Device: b.device}))
	return &b
}

func (a *objective) set(u int32, d uint8) {
	for _, i := range a.members[u] {
		a.device[i] = d
	}
	if a.moves != nil {
		a.moves.Move(a.members[u], d)
	}
}

// evaluate returns the score of the present decisions and what annealing minimises,
// which is infinite where that is known to be above limit and no more.
func (a *objective) evaluate(limit float64) (plan.Score, float64) {
	if a.moves != nil {
		s, ok := a.moves.Score(limit)
		if !ok {
			return s, math.Inf(1)
		}
		return s, a.of(s)
	}
	s := a.evaluator.Evaluate(a.given.Or(plan.Decision{Device: a.device}))
	return s, a.of(s)
}

// penalty turns scores into what annealing minimises: the time, and more for what
// does not fit, growing with how much, so that it finds its way back into memory.
type penalty struct {
	memory units.Bytes // of the largest device
	serial float64     // time of the whole step on the first device
}

// What memory that is missing costs: a share of the serial time for any, and that
// much of it for each device's worth.
const (
	anyOverflow = 0.05
	perDevice   = 4
)

func newPenalty(m *hw.Machine, e plan.Evaluator) (x penalty) {
	for _, d := range m.Devices {
		x.memory = max(x.memory, d.Memory)
	}
	for _, s := range e.OpSeconds(0) {
		x.serial += s
	}
	return x
}

// of returns the cost of a score.
func (x penalty) of(s plan.Score) float64 {
	if s.Feasible() {
		return s.Value
	}
	return s.Value + x.serial*(anyOverflow+perDevice*float64(s.Overflow)/float64(x.memory))
}

// coarseObjective returns an objective on the graph that coarsen makes of the units of part,
// of which tell, if not nil, is told first, and the number of its nodes.
func coarseObjective(p *plan.Problem, part *unit.Partition, coarsen coarsening, tell func(*unit.Coarsened, *plan.Problem)) (*objective, int, error) {
	c, err := coarsen(p.Graph, part, schedule.InLatency(p.Machine))
	if err != nil {
		return nil, 0, err
	}
	q, err := schedule.CoarseProblem(p, c)
	if err != nil {
		return nil, 0, err
	}
	if tell != nil {
		tell(c, q)
	}
	n := c.Graph.NumOps()
	a := &objective{
		evaluator: q.Evaluator, newMoves: q.Moves, given: plan.Decision{Priority: q.Priority}, device: make([]uint8, n), members: make([][]graph.OpID, part.NumUnits()),
		share: float64(n) / float64(p.Graph.NumOps()), penalty: newPenalty(p.Machine, q.Evaluator),
	}
	for v := range graph.OpID(n) {
		u := c.Unit(v)
		a.members[u] = append(a.members[u], v)
	}
	return a, n, nil
}
