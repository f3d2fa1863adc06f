package search

import (
	"context"
	"fmt"
	"slices"

	"placer/internal/parallel"
	"placer/placer/problem"
	"placer/plan"
)

// result sums up the search: what was skipped, the rows with all that is said of them, and the
// best of these.
func (s *searcher) result(ctx context.Context) (*Result, error) {
	if s.err != nil {
		return nil, s.err
	}
	r := &Result{Seconds: s.host.Clock(), FirstFeasible: s.firstFeasible, Interrupted: ctx.Err() != nil}
	for k := range s.methods {
		if s.skipped[k] != nil {
			r.Skipped = append(r.Skipped, *s.skipped[k])
		}
		if row := s.rows[k]; row != nil {
			r.Evaluations += row.Evaluations
		}
	}
	rows := slices.DeleteFunc(slices.Clone(s.rows), func(r *Row) bool { return r == nil })
	if len(rows) > 0 {
		s.describeAll(rows)
		if !r.Interrupted {
			rows = s.conclude(r, rows)
			r.Interrupted = ctx.Err() != nil
		}
		r.Best = choose(s.problem.Graph, rows)
		for _, row := range rows {
			r.Rows = append(r.Rows, *row)
		}
	}
	if len(r.Rows) == 0 {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPlacement, err)
		}
		if b := s.c.Budget.Seconds; b > 0 && r.Seconds >= b {
			return nil, fmt.Errorf("%w: %.3g s of %.3g s are gone", ErrNoTime, r.Seconds, b)
		}
		return nil, ErrNoPlacement
	}
	return r, nil
}

// conclude finds what the rows are held against, adds the rows that this makes, and
// tidies the best: what is predicted alone can be judged here.
//
// Under a budget in evaluations it breaks no promise of the methods that a larger budget never
// ends behind a smaller one. What can be shorter than the best of the methods follows from the
// baselines alone, which know no budget, and is the same under every budget: the references
// under fusions of theirs, and the best of all these, tidied. What follows from a search,
// whose last round the budget cuts anywhere, comes to the value of the best at most: a larger
// budget need not pass by the same plan.
func (s *searcher) conclude(r *Result, rows []*Row) []*Row {
	if s.host.Measurer != nil {
		return rows
	}
	p := s.problem
	e := p.Evaluator.Clone()
	promised := s.c.Budget.Evaluations > 0
	refer := p.Objective.Normal() != plan.Memory && p.Decides(plan.Place)
	rules, searched := s.rulesAndSearched()
	if refer {
		r.References = s.references(e, rules)
	}
	if promised && len(rules) > 0 {
		rows = s.tidyRules(e, rows, append(slices.Clip(rules), r.References.extra(s, e, rules)...))
	}
	if refer {
		r.References.under(s, e, rules, searched)
		rows = append(rows, r.References.extra(s, e, rows)...)
	}
	if s.c.Fewer && promised && p.Decides(plan.Place) {
		row, n := s.fewer(s.ctx, e, rows)
		if r.OnFewer = n; row != nil {
			rows = append(rows, row)
		}
	}
	best := rows[choose(p.Graph, rows)]
	if best.Method == s.c.Human {
		return rows // what reductions are relative to stays as published
	}
	within := upTo(best.Score.Value)
	if promised {
		within = sameAs(best.Score.Value)
	}
	s.tidy(e, best, within)
	return rows
}

// rulesAndSearched returns the rows of the baselines, and those of the other methods.
func (s *searcher) rulesAndSearched() (rules, searched []*Row) {
	for k, x := range s.rows {
		switch {
		case x == nil:
		case s.methods[k].Stage == StageBaseline:
			rules = append(rules, x)
		default:
			searched = append(searched, x)
		}
	}
	return rules, searched
}

// tidyRules tidies the best of rules, which may make it shorter, and returns rows with it
// if it is better than all of them.
func (s *searcher) tidyRules(e plan.Evaluator, rows, rules []*Row) []*Row {
	g := s.problem.Graph
	rule := rules[choose(g, rules)]
	if rule.Method == s.c.Human {
		return rows // what reductions are relative to stays as published
	}
	row := *rule
	s.tidy(e, &row, upTo(row.Score.Value))
	if !row.better(rows[choose(g, rows)]) {
		return rows
	}
	if k := slices.Index(rows, rule); k >= 0 {
		*rule = row
		return rows
	}
	return append(rows, &row)
}

// tidy tidies row r, whose value stays within the span.
func (s *searcher) tidy(e plan.Evaluator, r *Row, within span) {
	g := s.problem.Graph
	d, tries := tidy(g, e, r.Decision, r.Score.Overflow, within)
	was, before := r.Score.Value, r.Device
	if tidyNote(g, before, d.Device, "", tries) == "" {
		return
	}
	r.Decision = d
	s.judge(r, e)
	value := "the same value"
	if r.Score.Value < was*(1-tie) {
		value = fmt.Sprintf("a value %.3g%% less", 100*(1-r.Score.Value/was))
	}
	r.Notes = append(slices.Clip(r.Notes), tidyNote(g, before, d.Device, value, tries))
}

// judge fills what follows from r's decision.
func (s *searcher) judge(r *Row, e plan.Evaluator) {
	r.Score = e.Evaluate(r.Decision)
	r.describe(s.problem, e)
}

// describe fills what only the reader of a row wants to know.
func (r *Row) describe(p *problem.Problem, e plan.Evaluator) {
	r.FIFO = e.Evaluate(plan.Decision{Device: r.Device})
	r.Scheduled = r.Score
	if r.Predicted != nil {
		r.Scheduled = *r.Predicted
	}
	if r.Fusion != nil {
		r.Scheduled = e.Evaluate(plan.Decision{Device: r.Device, Priority: r.Priority})
	}
	r.Placed = r.Scheduled
	if !slices.Equal(r.Priority, p.Priority) {
		r.Placed = e.Evaluate(plan.Decision{Device: r.Device, Priority: p.Priority})
	}
	r.Peak = p.Peak(r.Decision)
}

// describeAll describes rows side by side. It comes behind the search: on large graphs a
// row takes as long as some evaluations.
func (s *searcher) describeAll(rows []*Row) {
	next := make(chan *Row, len(rows))
	for _, r := range rows {
		next <- r
	}
	close(next)
	var wait parallel.Group
	for range min(s.c.Workers, len(rows)) {
		e := s.problem.Evaluator.Clone()
		wait.Go(func() {
			for r := range next {
				r.describe(s.problem, e)
			}
		})
	}
	wait.Wait()
}
