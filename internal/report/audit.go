package report

import (
	"encoding/json"
	"fmt"
	"math"

	"placer/internal/compare"
	"placer/internal/jsonx"
)

// Audit recomputes every aggregate of a results file, a comparison or a search,
// from the times in the same file. checked counts the values compared.
func Audit(data []byte) (found []compare.Mismatch, checked int, err error) {
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, 0, err
	}
	switch {
	case compare.IsFormat(head.Format):
		return compare.Audit(data)
	case head.Format == SearchFormat:
		return auditSearch(data)
	}
	return nil, 0, fmt.Errorf("format is %q, want %q or %q", head.Format, compare.Format, SearchFormat)
}

// auditSearch recomputes best row, reductions, gaps and the count of
// evaluations.
func auditSearch(data []byte) ([]compare.Mismatch, int, error) {
	var s Search
	if err := jsonx.Decode(data, &s); err != nil {
		return nil, 0, err
	}
	if len(s.Rows) == 0 {
		return nil, 0, fmt.Errorf("the document has no rows")
	}
	s.recompute()
	again, err := json.Marshal(&s)
	if err != nil {
		return nil, 0, err
	}
	return compare.Differences(data, again)
}

// recompute derives what follows from the values of the rows: their ratios, the best of
// them, and what that is held against.
func (s *Search) recompute() {
	best := s.recomputeRows()
	for i := range s.Rows { // of equals the search may have chosen another
		if r := &s.Rows[i]; r.Method == s.Best.Method && r.Overflow == s.Rows[best].Overflow && r.objective() <= s.Rows[best].objective()*(1+1e-6) {
			best = i
		}
	}
	s.Best = s.Rows[best]
	for _, x := range []*Reference{s.OneDevice, s.BestRule} {
		if x != nil {
			x.Reduction = compare.Reduction(s.Best.objective(), x.Value)
		}
	}
}

// recomputeRows derives the ratios of every row and returns the first of the best.
func (s *Search) recomputeRows() (best int) {
	s.Evaluations = 0
	var human *Row
	for i := range s.Rows {
		r := &s.Rows[i]
		r.Feasible = r.Overflow == 0
		r.LowerBound = s.LowerBound
		s.Evaluations += r.Evaluations
		if r.Method == "human" && human == nil {
			human = r
		}
		if better(r, &s.Rows[best]) {
			best = i
		}
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		r.Reduction, r.OverOneDevice, r.Gap = nil, nil, nil
		if !r.Feasible {
			continue
		}
		bounded := r.objective() // of a measured row the prediction, which the bound is of
		if r.Predicted != nil {
			bounded = *r.Predicted
		}
		gap := bounded/s.LowerBound - 1
		if r.Gap = &gap; math.IsNaN(gap) || math.IsInf(gap, 0) {
			r.Gap = nil
		}
		if human != nil && human.objective() > 0 {
			share := compare.Reduction(r.objective(), human.objective())
			r.Reduction = &share
		}
		if x := s.OneDevice; x != nil && x.Feasible {
			share := compare.Reduction(r.objective(), x.Value)
			r.OverOneDevice = &share
		}
	}
	return best
}

// better reports whether a is preferable to b, as plan.Score says.
func better(a, b *Row) bool {
	if a.Overflow != b.Overflow {
		return a.Overflow < b.Overflow
	}
	return a.objective() < b.objective()
}
