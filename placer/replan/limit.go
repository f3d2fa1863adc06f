package replan

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// ledger knows what moves by where the nodes of a graph are: ops, or those of a coarsened
// graph.
type ledger struct {
	moves [][]units.Bytes // [N][D] where node i is on device d; nil where nothing does
	most  units.Bytes     // the limit
}

// ledger returns that of the problem's ops.
func (x *finder) ledger() *ledger {
	if x.ops == nil {
		own := make([]int32, len(x.old))
		for i := range own {
			own[i] = int32(i)
		}
		x.ops = x.ledgerOf(own, len(own))
	}
	return x.ops
}

// moved returns the bytes that a device gets and did not hold.
func (x *finder) moved(device []uint8) units.Bytes { return x.ledger().moved(device) }

// ledgerOf returns that of n nodes, of which ops belong to those that of, [N], says.
func (x *finder) ledgerOf(of []int32, n int) *ledger {
	l := &ledger{make([][]units.Bytes, n), x.limit}
	for i, v := range of {
		b := x.p.Graph.Op(graph.OpID(i)).Resident
		if b == 0 {
			continue
		}
		if l.moves[v] == nil {
			l.moves[v] = make([]units.Bytes, x.p.Machine.NumDevices())
		}
		for d := range l.moves[v] {
			if uint8(d) != x.old[i] {
				l.moves[v][d] += b
			}
		}
	}
	return l
}

// moved returns the bytes that move to device.
func (l *ledger) moved(device []uint8) (b units.Bytes) {
	for i, bytes := range l.moves {
		if bytes != nil {
			b += bytes[device[i]]
		}
	}
	return b
}

// limit has p judged under the limit.
func (l *ledger) limit(p *plan.Problem) {
	moves := p.Moves
	p.JudgeBy(&limited{p.Evaluator.Clone(), l})
	if moves != nil {
		p.Moves = func() plan.Moves { return &limitedMoves{Moves: moves(), of: l} }
	}
}

// limitCoarsened has the problem on the coarsened graph c judged under the limit.
func (x *finder) limitCoarsened(c *unit.Coarsened, p *plan.Problem) {
	x.ledgerOf(c.Of, c.Graph.NumOps()).limit(p)
}

// limited is an evaluator under the limit.
type limited struct {
	plan.Evaluator
	of *ledger
}

// Evaluate implements plan.Evaluator.
func (l *limited) Evaluate(d plan.Decision) plan.Score {
	s := l.Evaluator.Evaluate(d)
	s.Overflow += max(0, l.of.moved(d.Device)-l.of.most)
	return s
}

// Clone implements plan.Evaluator.
func (l *limited) Clone() plan.Evaluator { return &limited{l.Evaluator.Clone(), l.of} }

// limitedMoves judges changes as limited does.
type limitedMoves struct {
	plan.Moves
	of     *ledger
	device []uint8
	moved  units.Bytes
}

// Reset implements plan.Moves.
func (l *limitedMoves) Reset(d plan.Decision) {
	l.Moves.Reset(d)
	l.device = slices.Clone(d.Device)
	l.moved = l.of.moved(d.Device)
}

// Move implements plan.Moves.
func (l *limitedMoves) Move(ops []graph.OpID, device uint8) {
	l.Moves.Move(ops, device)
	for _, i := range ops {
		if b := l.of.moves[i]; b != nil {
			l.moved += b[device] - b[l.device[i]]
		}
		l.device[i] = device
	}
}

// Score implements plan.Moves.
func (l *limitedMoves) Score(limit float64) (plan.Score, bool) {
	s, ok := l.Moves.Score(limit)
	if ok {
		s.Overflow += max(0, l.moved-l.of.most)
	}
	return s, ok
}
