package cem

import (
	"slices"

	"placer/plan"
)

// Sample is one decision and its score.
type Sample struct {
	Action []int32 // [choices] the level of each, as rollout.Decoder reads it
	Score  plan.Score
}

// Elites are the best of the latest samples.
type Elites struct {
	window int
	share  float64
	recent []Sample // oldest first
}

// NewElites keeps the best share of the last window samples.
func NewElites(window int, share float64) *Elites { return &Elites{window: window, share: share} }

// Add keeps a round of samples: actions, [K][choices], and their scores, [K].
func (e *Elites) Add(actions [][]int32, scores []plan.Score) {
	for k, a := range actions {
		e.recent = append(e.recent, Sample{a, scores[k]})
	}
	e.recent = slices.Delete(e.recent, 0, max(0, len(e.recent)-e.window))
}

// Best returns the best of the kept samples, at least two where there are, the best
// first and the older of equal ones before the younger.
func (e *Elites) Best() []Sample {
	all := slices.Clone(e.recent)
	slices.SortStableFunc(all, func(a, b Sample) int { return a.Score.Compare(b.Score) })
	return all[:max(min(2, len(all)), int(e.share*float64(len(all))))]
}
