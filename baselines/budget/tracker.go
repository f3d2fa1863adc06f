// Package budget owns what every baseline does with its candidates: evaluate them
// under the problem's scheduler, count, keep the best and notice the end of the
// budget.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"placer/plan"
)

// Tracker evaluates the candidates of one method on one problem. It serves one
// goroutine.
type Tracker struct {
	method string
	ctx    context.Context
	p      *plan.Problem
	start  float64
	best   plan.Outcome
}

// New returns a tracker that has seen no candidate yet.
func New(ctx context.Context, p *plan.Problem, method string) *Tracker {
	return &Tracker{method: method, ctx: ctx, p: p, start: Now(p)}
}

// One is the whole of a method that makes a single placement: it evaluates device,
// [N].
func One(ctx context.Context, p *plan.Problem, method string, device []uint8) (*plan.Outcome, error) {
	t := New(ctx, p, method)
	t.Try(device)
	return t.Outcome()
}

// Try evaluates device, [N], keeps a copy if it is the best so far, and reports
// progress. The first candidate is always evaluated, so that a method whose
// budget is nothing still has an answer.
func (t *Tracker) Try(device []uint8) plan.Score { return t.TryPlan(device, nil) }

// TryPlan is Try under priority, [N]; nil is the problem's.
func (t *Tracker) TryPlan(device []uint8, priority []int32) plan.Score {
	return t.TryDecision(plan.Decision{Device: device, Priority: priority})
}

// TryDecision is Try under d's priority and fusion, [N]; a nil priority is the problem's, a
// nil fusion none.
func (t *Tracker) TryDecision(d plan.Decision) plan.Score {
	s := t.p.Evaluator.Evaluate(d.Or(plan.Decision{Priority: t.p.Priority}))
	t.tell(d, s, true)
	return s
}

// TryMoved is Try of device, [N], which m holds; ok is false where its value is known
// to be above limit and no more, which must not be below that of the best so far.
func (t *Tracker) TryMoved(m plan.Moves, device []uint8, limit float64) (s plan.Score, ok bool) {
	s, ok = m.Score(limit)
	t.tell(plan.Decision{Device: device}, s, ok)
	return s, ok
}

// tell counts an evaluation and, where its score is known, keeps the best.
func (t *Tracker) tell(d plan.Decision, s plan.Score, known bool) {
	t.best.Evaluations++
	better := known && (t.best.Evaluations == 1 || s.Better(t.best.Score))
	if better {
		t.best.Score = s
		t.best.Device = append(t.best.Device[:0], d.Device...)
		t.best.Priority, t.best.Fusion = slices.Clone(d.Priority), slices.Clone(d.Fusion)
	}
	if t.p.Report != nil && (better || t.best.Evaluations%16 == 0) {
		r := plan.Progress{Method: t.method, Evaluations: t.best.Evaluations, Best: t.best.Score}
		if better {
			r.Decision = t.best.Decision
		}
		t.p.Report(r)
	}
}

// Best returns the best score so far.
func (t *Tracker) Best() plan.Score { return t.best.Score }

// Evaluations returns how many candidates were evaluated.
func (t *Tracker) Evaluations() int { return t.best.Evaluations }

// Spent returns the share of the budget that is used up; see the function Spent.
func (t *Tracker) Spent() float64 { return Spent(t.p, t.start, float64(t.best.Evaluations)) }

// Done reports whether the context has ended or the budget is spent.
func (t *Tracker) Done() bool { return t.ctx.Err() != nil || t.Spent() >= 1 }

// Note adds a remark to the outcome.
func (t *Tracker) Note(format string, a ...any) {
	t.best.Notes = append(t.best.Notes, fmt.Sprintf(format, a...))
}

// Outcome returns the best candidate and the remarks.
func (t *Tracker) Outcome() (*plan.Outcome, error) {
	if t.best.Evaluations == 0 {
		if err := t.ctx.Err(); err != nil {
			return nil, fmt.Errorf("%s: stopped before its first placement: %w", t.method, err)
		}
		return nil, fmt.Errorf("%s: %w", t.method, errNothing)
	}
	return &t.best, nil
}

var errNothing = errors.New("made no placement")

// Unavailable is the error of a method that this computer lacks something for: a
// program, a library. It says what to install.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }
