package session

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"placer/internal/parallel"
	"placer/plan"
)

// Prescreen simulates every sample of a round and measures the best few. It
// implements plan.Rollouts, whose scores are the simulator's; who evaluates in
// rounds calls Refine with them. A clone starts with a ratio of its own.
type Prescreen struct {
	simulate     plan.Evaluator
	measurements *Measurements
	best         int
	ratio        float64 // running, of measured over predicted; 0 before the first
}

// ratioRate is how much the ratio of a round counts beside those before.
const ratioRate = 0.25

// NewPrescreen returns a prescreen that measures the best samples of a round.
func NewPrescreen(simulate plan.Evaluator, j *Measurements, best int) (*Prescreen, error) {
	if best < 1 {
		return nil, fmt.Errorf("the best %d samples of a round, want at least 1", best)
	}
	return &Prescreen{simulate: simulate, measurements: j, best: best}, nil
}

// Refine replaces the predicted scores of a round by measured ones and returns
// which those are.
//
// The samples that fit are put in the order of their predicted times, equals in
// the order of the round. From the front, those with a plan of their own are
// measured until there are as many as asked for; samples of the same plan as one
// of these share its score. Where there are feasible measurements, the running
// ratio becomes exp((1-a) ln ratio + a mean ln(measured/predicted)) with a = 1/4,
// the mean over them; the first round sets it. Every other sample that fits has
// its predicted time multiplied by the ratio. What a cache knows of those others is
// not used, so that a search that is resumed sees what it saw before.
//
// decision returns the k-th sample; it is called from one goroutine and its
// result is not changed afterwards.
func (s *Prescreen) Refine(scores []plan.Score, decision func(k int) plan.Decision) (measured []bool) {
	measured = make([]bool, len(scores))
	var order []int
	for k := range scores {
		if scores[k].Feasible() {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a].Value, scores[b].Value) })
	groups := s.pick(scores, order, decision)
	results := make([]plan.Score, len(groups))
	limit := make(chan struct{}, max(1, s.measurements.measurer.Parallel()))
	var wait parallel.Group
	for i, g := range groups {
		limit <- struct{}{}
		wait.Go(func() {
			defer func() { <-limit }()
			predicted := scores[g.samples[0]]
			var err error
			if results[i], err = s.measurements.Measure(g.decision, predicted); err != nil {
				results[i] = unmeasured(predicted)
			}
		})
	}
	wait.Wait()
	s.learn(scores, groups, results)
	for i, g := range groups {
		for _, k := range g.samples {
			scores[k], measured[k] = results[i], true
		}
	}
	if s.ratio > 0 {
		for _, k := range order {
			if !measured[k] {
				scores[k].Value *= s.ratio
			}
		}
	}
	return measured
}

// group is the samples of a round that share a plan.
type group struct {
	decision plan.Decision
	samples  []int
}

// pick returns the first plans of order, each with its samples.
func (s *Prescreen) pick(scores []plan.Score, order []int, decision func(k int) plan.Decision) (groups []group) {
	at := map[string]int{}
	for _, k := range order {
		n := len(groups)
		if n == s.best && scores[k].Value > scores[groups[n-1].samples[0]].Value {
			break // no plan of these
		}
		d := decision(k)
		hash := PlanHash(d)
		i, ok := at[hash]
		switch {
		case ok:
			groups[i].samples = append(groups[i].samples, k)
		case n < s.best:
			at[hash] = n
			groups = append(groups, group{d, []int{k}})
		}
	}
	return groups
}

// learn moves the ratio towards that of the feasible measurements.
func (s *Prescreen) learn(scores []plan.Score, groups []group, results []plan.Score) {
	sum, n := 0.0, 0
	for i, g := range groups {
		if results[i].Feasible() {
			sum += math.Log(results[i].Value / scores[g.samples[0]].Value)
			n++
		}
	}
	switch {
	case n == 0:
	case s.ratio == 0:
		s.ratio = math.Exp(sum / float64(n))
	default:
		s.ratio = math.Exp((1-ratioRate)*math.Log(s.ratio) + ratioRate*sum/float64(n))
	}
}

// Evaluate is as plan.Evaluator says: the simulator's score.
func (s *Prescreen) Evaluate(d plan.Decision) plan.Score {
	return s.simulate.Evaluate(d)
}

// Clone is as plan.Evaluator says.
func (s *Prescreen) Clone() plan.Evaluator { return s.Rollouts() }

// Rollouts returns a clone of s, for another policy.
func (s *Prescreen) Rollouts() plan.Rollouts {
	return &Prescreen{simulate: s.simulate.Clone(), measurements: s.measurements, best: s.best}
}

// Parallel is as plan.Rollouts says: one simulation for each goroutine there is.
func (s *Prescreen) Parallel() int { return 1 }

// OpSeconds is as plan.Evaluator says: predicted times.
func (s *Prescreen) OpSeconds(d int) []float64 { return s.simulate.OpSeconds(d) }
