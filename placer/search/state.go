package search

import (
	"fmt"
	"maps"
	"slices"

	"placer/placer/problem"
	"placer/plan"
)

// Event tells an observer what a method does. Calls come one at a time, from the
// method's goroutine.
type Event struct {
	Method      string
	Kind        plan.Kind
	What        What
	Seconds     float64 // on the host's clock
	Evaluations int     // of the method so far
	CPUSeconds  float64 // of the method so far
	Budget      plan.Budget
	Score       plan.Score // the best so far, once there is one
	// Decision is the method's new best one, valid during the call; its Device is nil
	// where there is none, Priority and Fusion where they are the problem's.
	plan.Decision
	Outcome *plan.Outcome // of a method that has ended well
	Reason  string        // of a method that was skipped
	Placer  plan.Placer
	// Cut says that the method ended, or was skipped, because the search was
	// interrupted: a later run should take it up again.
	Cut bool
}

// What is the kind of an event.
type What string

// Kinds of events.
const (
	Started  What = "started"
	Progress What = "progress"
	Ended    What = "ended"
	Recalled What = "recalled" // ended in the run that is being resumed
	Skipped  What = "skipped"
	Smaller  What = "smaller" // a search on fewer GPUs begins, Reason says on how many
)

// Observer is told of every event. An error ends the search.
type Observer func(Event) error

// Memory is what is left of an earlier run of the same search that was killed.
type Memory struct {
	// Ended methods, by name, are not run again.
	Ended map[string]Remembered
	// Running methods, by name, had found something when the run was killed.
	Running map[string]Remembered
	// FirstFeasible is the time of the first feasible placement, negative if there
	// was none, Seconds the time that had passed.
	FirstFeasible, Seconds float64
}

// Remembered is what an earlier run knew of a method.
type Remembered struct {
	Outcome    *plan.Outcome // nil: skipped, for Reason
	Reason     string
	CPUSeconds float64
	Checkpoint string
}

// with returns the better of what was remembered and out, with the evaluations of both;
// err where there is neither.
func (r Remembered) with(out *plan.Outcome, err error) (*plan.Outcome, error) {
	old := r.Outcome
	switch {
	case old == nil:
		return out, err
	case err != nil:
		return old, nil
	}
	evaluations := out.Evaluations + old.Evaluations
	if old.Score.Better(out.Score) {
		out = old
	}
	out.Evaluations = evaluations
	return out, nil
}

// judged returns m with the outcomes of p, each a plan of its graph and, of methods that had
// not ended, with the score that it has now: what a file claims is not taken for what was
// found. Measured scores stay.
func (m *Memory) judged(p *problem.Problem, measured bool) (*Memory, error) {
	of := Memory{Seconds: m.Seconds, FirstFeasible: m.FirstFeasible, Ended: m.Ended, Running: maps.Clone(m.Running)}
	for _, methods := range []map[string]Remembered{m.Ended, m.Running} {
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			if out := methods[name].Outcome; out != nil {
				kept := plan.Plan{Decision: out.Decision}
				if err := kept.Check(p.Graph, p.Machine); err != nil {
					return nil, fmt.Errorf("what the run remembers of method %s is damaged: %w", name, err)
				}
			}
		}
	}
	for name, r := range of.Running {
		if r.Outcome == nil || measured {
			continue
		}
		out := *r.Outcome
		d := out.Decision
		if d.Priority == nil {
			d.Priority = p.Priority
		}
		out.Score = p.Evaluator.Evaluate(d)
		r.Outcome = &out
		of.Running[name] = r
	}
	return &of, nil
}
