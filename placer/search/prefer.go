package search

import (
	"slices"

	"placer/placer/problem"
	"placer/plan"
)

// Prefer makes d, a decision that a method came to, the best of the result: whoever calls knows
// more of the plans than their scores say. The method's row becomes that of d, with note. It
// reports whether there is such a row.
func (r *Result) Prefer(p *problem.Problem, method string, d plan.Decision, note string) bool {
	k := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Method == method })
	if k < 0 {
		return false
	}
	row := &r.Rows[k]
	row.Decision = d.Or(plan.Decision{Priority: p.Priority})
	e := p.Evaluator.Clone()
	row.Score = e.Evaluate(row.Decision)
	row.describe(p, e)
	row.Notes = append(slices.Clip(row.Notes), note)
	r.Best = k
	return true
}
