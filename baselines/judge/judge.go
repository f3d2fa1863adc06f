// Package judge owns what every baseline does with its candidates: evaluate them
// under the problem's scheduler, count, keep the best, notice the end of the
// budget, and make placements that respect co-location groups.
package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"placer/plan"
)

// Judge evaluates the candidates of one method on one problem. It serves one
// goroutine.
type Judge struct {
	method string
	ctx    context.Context
	p      *plan.Problem
	start  float64
	best   plan.Outcome
}

// New returns a judge that has seen no candidate yet.
func New(ctx context.Context, p *plan.Problem, method string) *Judge {
	j := &Judge{method: method, ctx: ctx, p: p}
	if p.Clock != nil {
		j.start = p.Clock()
	}
	return j
}

// Try evaluates device, [N], keeps a copy if it is the best so far, and reports
// progress. The first candidate is always evaluated, so that a method whose
// budget is nothing still has an answer.
func (j *Judge) Try(device []uint8) plan.Score { return j.TryPlan(device, nil) }

// TryPlan is Try under priority, [N]; nil is the problem's.
func (j *Judge) TryPlan(device []uint8, priority []int32) plan.Score {
	under := priority
	if under == nil {
		under = j.p.Priority
	}
	s := j.p.Evaluator.Evaluate(device, under)
	j.best.Evaluations++
	better := j.best.Evaluations == 1 || s.Better(j.best.Score)
	if better {
		j.best.Score = s
		j.best.Device = append(j.best.Device[:0], device...)
		j.best.Priority = slices.Clone(priority)
	}
	if j.p.Report != nil && (better || j.best.Evaluations%16 == 0) {
		r := plan.Progress{Method: j.method, Evaluations: j.best.Evaluations, Best: j.best.Score}
		if better {
			r.Device = j.best.Device
		}
		j.p.Report(r)
	}
	return s
}

// Best returns the best score so far.
func (j *Judge) Best() plan.Score { return j.best.Score }

// Done reports whether the context has ended or the budget is spent.
func (j *Judge) Done() bool {
	b := j.p.Budget
	return j.ctx.Err() != nil ||
		b.Evaluations > 0 && j.best.Evaluations >= b.Evaluations ||
		b.Seconds > 0 && j.p.Clock != nil && j.p.Clock()-j.start >= b.Seconds
}

// Unbounded reports whether nothing but the context ends the method.
func (j *Judge) Unbounded() bool {
	return j.p.Budget.Evaluations <= 0 && (j.p.Budget.Seconds <= 0 || j.p.Clock == nil)
}

// Note adds a remark to the outcome.
func (j *Judge) Note(format string, a ...any) {
	j.best.Notes = append(j.best.Notes, fmt.Sprintf(format, a...))
}

// Outcome returns the best candidate and the remarks.
func (j *Judge) Outcome() (*plan.Outcome, error) {
	if j.best.Evaluations == 0 {
		if err := j.ctx.Err(); err != nil {
			return nil, fmt.Errorf("%s: stopped before its first placement: %w", j.method, err)
		}
		return nil, fmt.Errorf("%s: %w", j.method, errNothing)
	}
	return &j.best, nil
}

var errNothing = errors.New("made no placement")

// Unavailable is the error of a method that this computer lacks something for: a
// program, a library. It says what to install.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }
