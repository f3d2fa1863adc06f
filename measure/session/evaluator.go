package session

import "placer/plan"

// Evaluator gives measured step times. It implements plan.Rollouts; its clones
// share the measurements.
type Evaluator struct {
	simulate     plan.Evaluator
	measurements *Measurements
}

// NewEvaluator returns the evaluator that measures with j what simulate finds to
// fit.
func NewEvaluator(simulate plan.Evaluator, j *Measurements) *Evaluator {
	return &Evaluator{simulate, j}
}

// Evaluate is as plan.Evaluator says, except that it allocates. What cannot
// be measured does not fit.
func (e *Evaluator) Evaluate(d plan.Decision) plan.Score {
	predicted := e.simulate.Evaluate(d)
	s, err := e.measurements.Measure(d, predicted)
	if err != nil {
		return unmeasured(predicted)
	}
	return s
}

// Clone is as plan.Evaluator says.
func (e *Evaluator) Clone() plan.Evaluator { return e.Rollouts() }

// Rollouts returns a clone of e, for another policy.
func (e *Evaluator) Rollouts() plan.Rollouts { return &Evaluator{e.simulate.Clone(), e.measurements} }

// Refine is as plan.Rollouts says: all scores are measured.
func (e *Evaluator) Refine([]plan.Score, func(k int) plan.Decision) []bool { return nil }

// OpSeconds is as plan.Evaluator says: predicted times.
func (e *Evaluator) OpSeconds(d int) []float64 { return e.simulate.OpSeconds(d) }

// Parallel returns how many evaluations may usefully be under way.
func (e *Evaluator) Parallel() int { return e.measurements.measurer.Parallel() }
