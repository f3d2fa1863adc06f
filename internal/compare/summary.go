package compare

import (
	"math"
	"slices"

	"placer/plan"
)

// Comparison is the result of a comparison. Trials are the facts; rows and
// totals follow from them and from the matrix (Summarise).
type Comparison struct {
	Format string  `json:"format"`
	Matrix Matrix  `json:"matrix"`
	Unit   string  `json:"unit,omitempty"` // of what trials are judged by; seconds where it is empty
	Rows   []row   `json:"rows"`           // case by case, methods in order
	Totals []total `json:"totals"`         // methods in order
	Trials []Trial `json:"trials"`
	// Interrupted says that trials are missing.
	Interrupted bool `json:"interrupted"`
}

// row is one method on one case. Pointers are nil where there is no such figure.
type row struct {
	Case   string    `json:"case"`
	Method string    `json:"method"`
	Kind   plan.Kind `json:"kind"`
	Trials int       `json:"trials"` // with a placement that fits
	Failed int       `json:"failed"` // without
	// Median of the step times, trials that failed counting as infinite; nil where
	// that is infinite.
	Median *float64 `json:"median_step_time_s"`
	// Low and High bound the median with a confidence of at least 95% (Interval);
	// nil for fewer than six trials or an infinite end.
	Low  *float64 `json:"low_step_time_s"`
	High *float64 `json:"high_step_time_s"`
	Best *float64 `json:"best_step_time_s"`
	// Reduction is that of the median against the reference's.
	Reduction *float64 `json:"reduction"`
	// Gap is the median over the proven bound, less 1.
	Gap         *float64 `json:"gap"`
	Evaluations float64  `json:"median_evaluations"`
	Seconds     float64  `json:"median_seconds"`
	// SearchRatio is how many times sooner than the reference this method had what
	// the reference ended with: the median over seeds of the seconds in which the
	// reference came to its last improvement, over the median of the seconds in
	// which this method first was as good as the reference's median.
	SearchRatio *float64 `json:"search_time_ratio"`
	// EvaluationRatio is the same in evaluations.
	EvaluationRatio *float64 `json:"evaluation_ratio"`
}

// total is one method over all cases.
type total struct {
	Method string `json:"method"`
	Cases  int    `json:"cases"`  // with a reduction: those that the reference and the method fit
	Failed int    `json:"failed"` // cases on which the method's median does not fit
	// Reduction is 1 less the geometric mean over cases of the ratio of medians.
	Reduction *float64 `json:"reduction"`
	// Wins, ties and losses count seeds on cases: a difference of less than
	// tieShare is a tie, what fits beats what does not. Where neither fits nothing counts.
	Wins   int `json:"wins"`
	Ties   int `json:"ties"`
	Losses int `json:"losses"`
	// Worst is the largest share by which a case's median is longer than the
	// reference's, and the case; 0 where none is longer.
	Worst     float64  `json:"worst_regression"`
	WorstCase string   `json:"worst_regression_case,omitempty"`
	Gap       *float64 `json:"mean_gap"` // arithmetic mean over the cases
	// Geometric means over the cases that have the figure.
	SearchRatio     *float64 `json:"search_time_ratio"`
	EvaluationRatio *float64 `json:"evaluation_ratio"`
}

// tieShare is the relative difference below which two step times are a tie.
const tieShare = 1e-3

// Summarise returns the rows and totals of the trials of m.
func Summarise(m Matrix, trials []Trial) *Comparison {
	c := &Comparison{Format: Format, Matrix: m, Trials: slices.Clone(trials)}
	if m.Objective == plan.Memory {
		c.Unit = "bytes"
	}
	order := map[Cell]int{}
	for i, cell := range m.Cells() {
		order[cell] = i
	}
	slices.SortStableFunc(c.Trials, func(a, b Trial) int { return order[a.Cell] - order[b.Cell] })
	c.Interrupted = len(c.Trials) < len(order)
	of := map[[2]string][]Trial{}
	for _, t := range c.Trials {
		k := [2]string{t.Case, t.Method}
		of[k] = append(of[k], t)
	}
	totals := map[string]*totalSum{}
	for _, x := range m.Cases {
		reference := of[[2]string{x.Name(), m.Against}]
		for _, method := range m.Methods {
			ours := of[[2]string{x.Name(), method}]
			if len(ours) == 0 {
				continue
			}
			r := summariseCell(ours, reference)
			c.Rows = append(c.Rows, r)
			t := totals[method]
			if t == nil {
				t = &totalSum{}
				totals[method] = t
			}
			t.add(&r, ours, reference)
		}
	}
	for _, method := range m.Methods {
		if t := totals[method]; t != nil {
			c.Totals = append(c.Totals, t.result(method))
		}
	}
	return c
}

// summariseCell summarises the trials of one method on one case.
func summariseCell(ours, reference []Trial) row {
	r := row{Case: ours[0].Case, Method: ours[0].Method, Kind: ours[0].Kind}
	var evaluations, seconds []float64
	for i := range ours {
		if ours[i].Feasible() {
			r.Trials++
		} else {
			r.Failed++
		}
		if ours[i].Skipped == "" {
			evaluations = append(evaluations, float64(ours[i].Evaluations))
			seconds = append(seconds, ours[i].Seconds)
		}
	}
	if len(evaluations) > 0 {
		r.Evaluations, r.Seconds = Median(evaluations), Median(seconds)
	}
	times := stepTimes(ours)
	median := Median(times)
	r.Median, r.Best = finite(median), finite(slices.Min(times))
	if low, high, ok := Interval(times); ok {
		r.Low, r.High = finite(low), finite(high)
	}
	if bound := ours[0].LowerBound; bound > 0 && r.Median != nil {
		r.Gap = finite(median/bound - 1)
	}
	if len(reference) == 0 {
		return r
	}
	theirs := Median(stepTimes(reference))
	if r.Median == nil || math.IsInf(theirs, 1) {
		return r
	}
	r.Reduction = finite(Reduction(median, theirs))
	var lastEvaluations, lastSeconds, reachedEvaluations, reachedSeconds []float64
	for i := range reference {
		e, s := reference[i].reached(reference[i].time())
		lastEvaluations, lastSeconds = append(lastEvaluations, e), append(lastSeconds, s)
	}
	for i := range ours {
		e, s := ours[i].reached(theirs)
		reachedEvaluations, reachedSeconds = append(reachedEvaluations, e), append(reachedSeconds, s)
	}
	r.EvaluationRatio = ratio(Median(lastEvaluations), Median(reachedEvaluations))
	r.SearchRatio = ratio(Median(lastSeconds), Median(reachedSeconds))
	return r
}

func stepTimes(trials []Trial) []float64 {
	xs := make([]float64, len(trials))
	for i := range trials {
		xs[i] = trials[i].time()
	}
	return xs
}

// ratio returns a/b, nil where it is no positive number.
func ratio(a, b float64) *float64 {
	if !(a > 0) || !(b > 0) || math.IsInf(a, 1) || math.IsInf(b, 1) {
		return nil
	}
	return finite(a / b)
}

// finite returns a pointer to x, nil where x is infinite or no number.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// totalSum collects the rows of one method.
type totalSum struct {
	t                                   total
	logRatio, logSearch, logEvaluations float64
	gaps                                float64
	numGaps, numSearches, numRatios     int
}

func (s *totalSum) add(r *row, ours, reference []Trial) {
	if r.Gap != nil {
		s.gaps += *r.Gap
		s.numGaps++
	}
	if r.SearchRatio != nil {
		s.logSearch += math.Log(*r.SearchRatio)
		s.numSearches++
	}
	if r.EvaluationRatio != nil {
		s.logEvaluations += math.Log(*r.EvaluationRatio)
		s.numRatios++
	}
	for i := range ours {
		for j := range reference {
			if ours[i].Seed == reference[j].Seed {
				s.score(ours[i].time(), reference[j].time())
			}
		}
	}
	if r.Median == nil {
		s.t.Failed++
	}
	if r.Reduction == nil {
		return
	}
	s.t.Cases++
	s.logRatio += math.Log(1 - *r.Reduction)
	if w := worse(1-*r.Reduction, 1); w > s.t.Worst {
		s.t.Worst, s.t.WorstCase = w, r.Case
	}
}

func (s *totalSum) score(ours, theirs float64) {
	switch {
	case math.IsInf(ours, 1) && math.IsInf(theirs, 1):
	case ours == theirs || math.Abs(ours-theirs) < tieShare*theirs && !math.IsInf(theirs, 1):
		s.t.Ties++
	case ours < theirs:
		s.t.Wins++
	default:
		s.t.Losses++
	}
}

func (s *totalSum) result(method string) total {
	t := s.t
	t.Method = method
	if t.Cases > 0 {
		t.Reduction = finite(1 - math.Exp(s.logRatio/float64(t.Cases)))
	}
	if s.numGaps > 0 {
		t.Gap = finite(s.gaps / float64(s.numGaps))
	}
	if s.numSearches > 0 {
		t.SearchRatio = finite(math.Exp(s.logSearch / float64(s.numSearches)))
	}
	if s.numRatios > 0 {
		t.EvaluationRatio = finite(math.Exp(s.logEvaluations / float64(s.numRatios)))
	}
	return t
}

// WhyNone says in a word or three why row k has no median: its method was unavailable in every
// trial, or no placement fits.
func (c *Comparison) WhyNone(k int) string {
	r := &c.Rows[k]
	for i := range c.Trials {
		if t := &c.Trials[i]; t.Case == r.Case && t.Method == r.Method && t.Skipped == "" {
			return "does not fit"
		}
	}
	return "unavailable"
}
