package reinforce

import (
	"placer/graph/unit"
	"placer/plan"
)

// Rounds are the rounds of one controller: samples of placements that are measured and
// become advantages.
type Rounds struct {
	Trials *Trials
	// Advantage is that of each sample of the last round, [K].
	Advantage []float32
	// Scores are those of its placements, [K].
	Scores []plan.Score
	// Observe, if not nil, is told of every round.
	Observe func(Round)

	signal *Signal
}

// NewRounds returns rounds of so many samples.
func NewRounds(t *Trials, c SignalConfig, samples int, observe func(Round)) *Rounds {
	return &Rounds{Trials: t, Advantage: make([]float32, samples), Scores: make([]plan.Score, samples), Observe: observe, signal: NewSignal(c, t.Serial)}
}

// Measure evaluates the placements of a round: sample k puts part u of part on device
// of(k, u). counts says whether any of them moves the policy; more is false when the
// budget was spent before the last.
func (r *Rounds) Measure(part *unit.Partition, of func(k int, u int32) int32) (counts, more bool) {
	for k := range r.Scores {
		if r.Trials.Done() {
			return false, false
		}
		r.Scores[k] = r.Trials.TryUnits(part, func(u int32) int32 { return of(k, u) })
	}
	counts = r.signal.Advantages(r.Scores, r.Advantage)
	if r.Observe != nil {
		x := r.signal.summary(r.Scores)
		x.Evaluations, x.Best = r.Trials.Evaluations(), r.Trials.Best()
		r.Observe(x)
	}
	return counts, true
}
