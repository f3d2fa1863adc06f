package methods

import (
	"context"
	"errors"
	"math"
	"slices"

	"placer/placer/search"
	"placer/plan"
)

// GivenName is the name of the method that Given returns.
const GivenName = "given"

// Given returns the method, before all others, that gives the best of plans that are there already, as they
// are judged now. What the search polishes starts from the best of all, so a search never
// ends behind a plan that it was given.
func Given(plans []plan.Decision) search.Method {
	return search.Method{Name: GivenName, Kind: plan.Search, New: func(search.Start) (plan.Placer, error) { return given(plans), nil }}
}

type given []plan.Decision

func (given) Name() string    { return GivenName }
func (given) Kind() plan.Kind { return plan.Search } // no rule's: who made them is not known

func (g given) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	out := &plan.Outcome{}
	judge := func(d plan.Decision) (plan.Score, bool) { return p.Evaluator.Evaluate(d), true }
	if p.Moves != nil { // which stop where a plan is no better
		moves := p.Moves()
		judge = func(d plan.Decision) (plan.Score, bool) {
			limit := math.Inf(1)
			if out.Device != nil && out.Score.Feasible() {
				limit = out.Score.Value
			}
			moves.Reset(d)
			return moves.Score(limit)
		}
	}
	for _, d := range g {
		if out.Device != nil && ctx.Err() != nil {
			break
		}
		if slices.Max(d.Device) >= uint8(min(p.Machine.NumDevices(), 255)) {
			continue // of a larger machine: a search goes on to fewer GPUs
		}
		d = p.Decided(d)
		s, ok := judge(p.Complete(d))
		if out.Evaluations++; !ok {
			continue
		}
		if out.Device == nil || s.Better(out.Score) {
			out.Decision, out.Score = d.Clone(), s
		}
	}
	if out.Device == nil {
		return nil, errors.New("no plan given is for so few devices")
	}
	return out, nil
}
