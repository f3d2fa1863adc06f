package corpus

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"placer/graph/unit"
	"placer/internal/faults"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// Score is a plan.Score of steps in a file.
type Score struct {
	Seconds float64 `json:"seconds"`
	// Overflow is what does not fit, in bytes.
	Overflow units.Bytes `json:"overflow,omitempty"`
}

func scoreOf(s plan.Score) Score { return Score{s.Value, s.Overflow} }

// Problem is one of a corpus with its label.
type Problem struct {
	Index int `json:"index"` // of the draw, from 0
	Recipe
	Graph string `json:"graph"` // hash, by which a generator that has changed is found out
	Ops   int    `json:"ops"`
	Cells int    `json:"cells"`
	// Evaluations, Seed and CPUSeconds are those of the search that found the plan;
	// CPUSeconds is 0 where the budget was in evaluations, under which the seed repeats it.
	Evaluations int     `json:"evaluations"`
	Seed        uint64  `json:"seed"`
	CPUSeconds  float64 `json:"cpu_seconds,omitempty"`
	Method      string  `json:"method"` // of the search's, which found the plan
	// Best is the score of the plan, Placed that of its devices alone, under the problem's
	// own priorities and without fusion; Expert and OneDevice are those of the rules.
	Best      Score   `json:"best"`
	Placed    Score   `json:"placed"`
	Expert    Score   `json:"expert"`
	OneDevice Score   `json:"one_device"`
	Bound     float64 `json:"bound"` // no step is shorter, in seconds
	Plan      string  `json:"plan"`  // see encode; in base64
}

// Validate reports every fault that can be seen without building the problem.
func (x *Problem) Validate() error {
	var errs faults.List
	errs.If(x.Index < 0, "index is %d", x.Index)
	errs = append(errs, x.Recipe.Validate())
	errs.If(x.Graph == "" || x.Ops < 1 || x.Cells < 1, "graph %q of %d ops and %d cells", x.Graph, x.Ops, x.Cells)
	errs.If(x.Evaluations < 1 || !(x.CPUSeconds >= 0), "%d evaluations in %g CPU seconds", x.Evaluations, x.CPUSeconds)
	for _, s := range []struct {
		name string
		Score
	}{{"best", x.Best}, {"placed", x.Placed}, {"expert", x.Expert}, {"one_device", x.OneDevice}} {
		errs.If(!(s.Seconds > 0) || math.IsInf(s.Seconds, 0) || s.Overflow < 0, "%s: %g seconds, %d bytes too much", s.name, s.Seconds, s.Overflow)
	}
	errs.If(!(x.Bound >= 0) || math.IsInf(x.Bound, 0), "bound is %g", x.Bound)
	if _, err := base64.StdEncoding.DecodeString(x.Plan); err != nil {
		errs = append(errs, fmt.Errorf("plan: %w", err))
	}
	return errors.Join(errs...)
}

// Fits reports whether the plan does.
func (x *Problem) Fits() bool { return x.Best.Overflow == 0 }

// Open rebuilds the problem and its plan.
func (x *Problem) Open() (*problem.Problem, plan.Decision, error) {
	p, err := x.Recipe.Problem()
	if err != nil {
		return nil, plan.Decision{}, x.at(err)
	}
	if got := p.Graph.Hash(); got != x.Graph {
		return nil, plan.Decision{}, x.at(fmt.Errorf("%s is now graph %.12s, the label is for %.12s: its generator has changed, so the problem must be labelled anew", x.Net, got, x.Graph))
	}
	code, err := base64.StdEncoding.DecodeString(x.Plan)
	if err != nil {
		return nil, plan.Decision{}, x.at(fmt.Errorf("plan: %w", err))
	}
	d, err := decode(p, code)
	if err != nil {
		return nil, plan.Decision{}, x.at(err)
	}
	return p, d, nil
}

// Check reports where the plan's scores are not those recorded.
func (x *Problem) Check() error {
	p, d, err := x.Open()
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name     string
		recorded Score
		d        plan.Decision
	}{{"best", x.Best, d}, {"placed", x.Placed, plan.Decision{Device: d.Device, Priority: p.Priority}}} {
		if got := scoreOf(p.Evaluator.Evaluate(s.d)); got != s.recorded {
			return x.at(fmt.Errorf("%s: the plan's score is %v, recorded is %v", s.name, got, s.recorded))
		}
	}
	return nil
}

// at says which problem err is about.
func (x *Problem) at(err error) error { return fmt.Errorf("problem %d: %w", x.Index, err) }

// label fills what follows from p, on which a search has decided d; a nil Priority is the
// problem's.
func (x *Problem) label(p *problem.Problem, d plan.Decision) error {
	d = d.Or(plan.Decision{Priority: p.Priority})
	code, err := encode(p, d)
	if err != nil {
		return err
	}
	x.Graph, x.Ops, x.Cells, x.Bound = p.Graph.Hash(), p.Graph.NumOps(), p.Units.Levels[unit.Cell].NumUnits(), p.Bound
	x.Best, x.Placed = scoreOf(p.Evaluator.Evaluate(d)), scoreOf(p.Evaluate(d.Device))
	x.Plan = base64.StdEncoding.EncodeToString(code)
	return nil
}
