package robust

import (
	"math"

	"placer/graph"
	"placer/plan"
)

// moves judges a placement that changes by some ops at a time as Evaluator does.
type moves struct {
	of       []plan.Moves // by machine
	quantile float64
	values   []float64
}

var _ plan.Moves = (*moves)(nil)

// Moves returns an evaluator of changes that scores as e does, for any goroutine.
func (e *Evaluator) Moves() plan.Moves {
	n := len(e.machine)
	x := &moves{of: make([]plan.Moves, n), quantile: e.c.Quantile, values: make([]float64, n)}
	for k, m := range e.machine {
		x.of[k] = m.Moves()
	}
	return x
}

// Reset is as plan.Moves says.
func (x *moves) Reset(d plan.Decision) {
	for _, m := range x.of {
		m.Reset(d)
	}
}

// Move is as plan.Moves says.
func (x *moves) Move(ops []graph.OpID, device uint8) {
	for _, m := range x.of {
		m.Move(ops, device)
	}
}

// Score is as plan.Moves says. Every machine runs: the quantile depends on all of them.
func (x *moves) Score(float64) (s plan.Score, ok bool) {
	for k, m := range x.of {
		got, _ := m.Score(math.Inf(1))
		x.values[k] = got.Value
		s.Overflow = max(s.Overflow, got.Overflow)
	}
	s.Value = fitted(x.values, x.quantile)
	return s, true
}
