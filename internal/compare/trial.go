package compare

import (
	"math"

	"placer/plan"
)

// Trial is what one method came to on one case with one seed. Where the matrix
// has another objective than the step time, keys that name a step time or a bound
// hold what that objective judges by, in the unit that the comparison names.
type Trial struct {
	Cell
	Kind plan.Kind `json:"kind"`
	// Skipped says why there is no placement; empty where there is one.
	Skipped     string  `json:"skipped,omitempty"`
	StepTime    float64 `json:"step_time_s"`    // what the case's evaluator judges by
	Overflow    int64   `json:"overflow_bytes"` // summed over devices
	LowerBound  float64 `json:"lower_bound_s"`  // proven, of the case
	Evaluations int     `json:"evaluations"`
	// Seconds is wall time; trials that ran beside this one slowed it.
	Seconds      float64       `json:"seconds"`
	Improvements []Improvement `json:"improvements,omitempty"`
	Notes        []string      `json:"notes,omitempty"`
}

// Improvement is a moment at which a trial's best placement that fits became
// better.
type Improvement struct {
	Evaluations int     `json:"evaluations"`
	Seconds     float64 `json:"seconds"`
	StepTime    float64 `json:"step_time_s"`
}

// Feasible reports whether the trial has a placement that fits.
func (t *Trial) Feasible() bool { return t.Skipped == "" && t.Overflow == 0 }

// time is the step time for statistics: infinite where nothing fits.
func (t *Trial) time() float64 {
	if !t.Feasible() {
		return math.Inf(1)
	}
	return t.StepTime
}

// reached returns when the trial was first at least as good as target, infinite
// if it never was.
func (t *Trial) reached(target float64) (evaluations, seconds float64) {
	for _, x := range t.Improvements {
		if x.StepTime <= target {
			return float64(x.Evaluations), x.Seconds
		}
	}
	if t.Feasible() && t.StepTime <= target {
		return float64(t.Evaluations), t.Seconds
	}
	return math.Inf(1), math.Inf(1)
}

// Recorder collects the improvements of one trial. It keeps those that are at
// least a thousandth better than the one kept before.
type Recorder struct {
	Clock func() float64 // seconds since the trial began
	kept  []Improvement
	last  *Improvement // the newest one, where it has not been kept
}

// Observe is a plan.Problem's Report.
func (r *Recorder) Observe(p plan.Progress) {
	if !p.Best.Feasible() {
		return
	}
	x := Improvement{p.Evaluations, r.Clock(), p.Best.Value}
	switch n := len(r.kept); {
	case n > 0 && x.StepTime >= r.newest():
	case n > 0 && x.StepTime > r.kept[n-1].StepTime*(1-1e-3):
		r.last = &x
	default:
		r.kept, r.last = append(r.kept, x), nil
	}
}

func (r *Recorder) newest() float64 {
	if r.last != nil {
		return r.last.StepTime
	}
	return r.kept[len(r.kept)-1].StepTime
}

// Improvements returns what has been collected.
func (r *Recorder) Improvements() []Improvement {
	if r.last != nil {
		return append(r.kept[:len(r.kept):len(r.kept)], *r.last)
	}
	return r.kept
}
