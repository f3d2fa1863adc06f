package budget

import "placer/plan"

// Now reads p's clock, in seconds; 0 where it has none.
func Now(p *plan.Problem) float64 {
	if p.Clock == nil {
		return 0
	}
	return p.Clock()
}

// Spent returns the share of p's budget that evaluations, made since the clock read
// start, have used up, above 1 where they exceed it; 0 where nothing bounds p.
func Spent(p *plan.Problem, start, evaluations float64) (share float64) {
	if n := p.Budget.Evaluations; n > 0 {
		share = evaluations / float64(n)
	}
	if s := p.Budget.Seconds; s > 0 && p.Clock != nil {
		share = max(share, (p.Clock()-start)/s)
	}
	return share
}

// Unbounded reports whether p's budget bounds nothing.
func Unbounded(p *plan.Problem) bool {
	return p.Budget.Evaluations <= 0 && (p.Budget.Seconds <= 0 || p.Clock == nil)
}

// DefaultEvaluations is the budget of a search where a problem sets none.
const DefaultEvaluations = 2000

// OrDefault returns p, or a copy with DefaultEvaluations where nothing bounds p.
func OrDefault(p *plan.Problem) *plan.Problem {
	if !Unbounded(p) {
		return p
	}
	q := *p
	q.Budget.Evaluations = DefaultEvaluations
	return &q
}
