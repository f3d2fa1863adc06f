package measured

import "placer/plan"

// Evaluator gives measured step times. It implements plan.Evaluator; its clones
// share the judge.
type Evaluator struct {
	simulate plan.Evaluator
	judge    *Judge
}

// NewEvaluator returns the evaluator that measures with j what simulate finds to
// fit.
func NewEvaluator(simulate plan.Evaluator, j *Judge) *Evaluator { return &Evaluator{simulate, j} }

// Evaluate is as plan.Evaluator says, except that it allocates.
func (e *Evaluator) Evaluate(device []uint8, priority []int32) plan.Score {
	return e.EvaluateFused(device, priority, nil)
}

// EvaluateFused is as plan.Evaluator says, except that it allocates. What cannot
// be measured does not fit.
func (e *Evaluator) EvaluateFused(device []uint8, priority []int32, fusion []uint8) plan.Score {
	predicted := e.simulate.EvaluateFused(device, priority, fusion)
	s, err := e.judge.Measure(plan.Decision{Device: device, Priority: priority, Fusion: fusion}, predicted)
	if err != nil {
		return unmeasured(predicted)
	}
	return s
}

// Clone is as plan.Evaluator says.
func (e *Evaluator) Clone() plan.Evaluator { return &Evaluator{e.simulate.Clone(), e.judge} }

// OpSeconds is as plan.Evaluator says: predicted times.
func (e *Evaluator) OpSeconds(d int) []float64 { return e.simulate.OpSeconds(d) }

// Parallel returns how many evaluations may usefully be under way.
func (e *Evaluator) Parallel() int { return e.judge.meter.Parallel() }
