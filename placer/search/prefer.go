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

// Consider adds a row of d, a placement that no method of the search came to, if that is better
// than the best row, and makes it the best. Rows that are measured stay as they are.
func (r *Result) Consider(p *problem.Problem, method string, d plan.Decision, evaluations int, note string) {
	best := &r.Rows[r.Best]
	if best.Predicted != nil {
		return
	}
	row := Row{Method: method, Kind: plan.Search, Evaluations: evaluations, Decision: d.Or(plan.Decision{Priority: p.Priority}), Notes: []string{note}}
	e := p.Evaluator.Clone()
	row.Score = e.Evaluate(row.Decision)
	if !row.better(best) {
		return
	}
	row.describe(p, e)
	r.Rows = append(r.Rows, row)
	r.Best = len(r.Rows) - 1
}
