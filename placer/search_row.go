package placer

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
	FIFO   plan.Score // the same devices under FIFO, without fusion
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
	Device     []uint8 // [N]
	Priority   []int32 // [N]; nil: FIFO
	Fusion     []uint8 // [N]; nil: none
}

// Skip is a method without a placement, and why.
type Skip struct {
	Method string
	Kind   plan.Kind
	Reason string
}

// SearchResult is what a search found. Rows are in the order of the methods.
type SearchResult struct {
	Rows    []Row
	Skipped []Skip
	Best    int // index of the best row; the first of equals
	// Seconds the search took, and until the first feasible placement (negative if
	// there was none), on the host's clock.
	Seconds, FirstFeasible float64
	Evaluations            int // of all methods
	Interrupted            bool
}

// Row returns the row of a method, or nil.
func (r *SearchResult) Row(method string) *Row {
	for i := range r.Rows {
		if r.Rows[i].Method == method {
			return &r.Rows[i]
		}
	}
	return nil
}

// Reduction returns by which share row r's step is shorter than that of the row
// of method reference, 0.25 for a quarter; ok is false without such a row.
func (s *SearchResult) Reduction(r *Row, reference string) (share float64, ok bool) {
	h := s.Row(reference)
	if h == nil || !(h.Score.Seconds > 0) {
		return 0, false
	}
	return 1 - r.Score.Seconds/h.Score.Seconds, true
}

// Gap returns how far row r's step is above the bound, 0.25 for a quarter.
func (r *Row) Gap(bound float64) float64 { return r.Score.Seconds/bound - 1 }
