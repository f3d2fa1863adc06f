package search

import (
	"placer/plan"
	"placer/units"
)

// Row is what one method came to, judged by the task's evaluator and not by the
// method.
type Row struct {
	Method string
	Kind   plan.Kind
	Score  plan.Score
	// Predicted is the score of the task's Evaluator where Score is measured; nil
	// without a Measurer. Unmeasured says why Score is a prediction all the same.
	Predicted  *plan.Score
	Unmeasured string
	FIFO       plan.Score // the same devices under FIFO, without fusion
	// Placed is the score of the devices under the task's scheduler without fusion,
	// Scheduled that with the row's priorities. They differ from Score by what the
	// other tasks are worth.
	Placed, Scheduled plan.Score
	Peak              []units.Bytes // [D]
	Evaluations       int
	// CPUSeconds is the processor time the method used. Methods that run at once
	// share what the program uses equally.
	CPUSeconds float64
	Notes      []string
	plan.Decision
}

// Skip is a method without a placement, and why.
type Skip struct {
	Method string
	Kind   plan.Kind
	Reason string
}

// Result is what a search found. Rows are in the order of the methods.
type Result struct {
	Rows    []Row
	Skipped []Skip
	Best    int // index of the best row; of equals that on the fewest devices
	// Seconds the search took, and until the first feasible placement (negative if
	// there was none), on the host's clock.
	Seconds, FirstFeasible float64
	Evaluations            int // of all methods
	OnFewer                int // evaluations of the searches on fewer GPUs, beside those
	Interrupted            bool
	// References are nil where rows are measured, by the memory objective, and where
	// devices are not decided.
	References References
}

// Row returns the row of a method, or nil.
func (r *Result) Row(method string) *Row {
	for i := range r.Rows {
		if r.Rows[i].Method == method {
			return &r.Rows[i]
		}
	}
	return nil
}

// Reduction returns by which share row of's step is shorter than that of the row
// of method reference, 0.25 for a quarter; ok is false without such a row.
func (r *Result) Reduction(of *Row, reference string) (share float64, ok bool) {
	h := r.Row(reference)
	if h == nil || !(h.Score.Value > 0) || (h.Unmeasured == "") != (of.Unmeasured == "") {
		return 0, false
	}
	return 1 - of.Score.Value/h.Score.Value, true
}

// Gap returns how far row r's step is above the bound, 0.25 for a quarter. The
// bound is one of predicted steps, and so is the step here. Above a bound of 0, which
// a graph without a tensor has by the memory objective, there is no such share: ok is
// false unless the row is at it.
func (r *Row) Gap(bound float64) (gap float64, ok bool) {
	value := r.Score.Value
	if r.Predicted != nil {
		value = r.Predicted.Value
	}
	if !(bound > 0) {
		return 0, value == bound
	}
	return value/bound - 1, true
}

// better reports whether r is preferable to o: by score, but what is known to fit
// by a measurement before what is only predicted to.
func (r *Row) better(o *Row) bool {
	if a, b := r.Unmeasured == "", o.Unmeasured == ""; a != b && r.Score.Feasible() && o.Score.Feasible() {
		return a
	}
	return r.Score.Better(o.Score)
}
