package sequential

import (
	"cmp"
	"math"
	"slices"

	"placer/plan"
)

// Sample is a plan that the policy made, with its score by the problem's evaluator.
type Sample struct {
	plan.Decision
	Score plan.Score
	level level
	clock float64 // when the policy's own schedule of it ends, in seconds
}

// Best returns the best of samples, of which there must be one; the first of equals.
func Best(samples []Sample) Sample { return samples[bestAt(samples)] }

// bestAt returns which is Best.
func bestAt(samples []Sample) int {
	best := 0
	for i, x := range samples {
		if x.Score.Better(samples[best].Score) {
			best = i
		}
	}
	return best
}

// shortlist holds the rollouts whose schedules end soonest, each schedule once.
type shortlist struct {
	most int
	of   []Sample // by clock
}

// offer takes in the best of x's refinements, made at a level, if it is one of them.
func (l *shortlist) offer(at level, x *state) {
	place, same := slices.BinarySearchFunc(l.of, x.soonest, func(y Sample, clock float64) int { return cmp.Compare(y.clock, clock) })
	if same || place == l.most {
		return
	}
	y := Sample{Decision: plan.Decision{Device: make([]uint8, len(x.s.part.Of))}, level: at, clock: x.soonest}
	x.s.place(x.best, y.Device)
	l.of = slices.Insert(l.of, place, y)
	l.of = l.of[:min(len(l.of), l.most)]
}

// merge returns first and the first of each list, then the second of each, and so
// on, by clock within a rank, until there are k; of schedules whose ends differ by no
// more than alike, one, as long as there are others.
func merge(first []Sample, lists []*shortlist, k int, alike float64) []Sample {
	out, longest := slices.Clone(first), 0
	for _, l := range lists {
		longest = max(longest, len(l.of))
	}
	for _, apart := range []float64{alike, 0} {
		for rank := range longest {
			var row []Sample
			for _, l := range lists {
				if rank < len(l.of) {
					row = append(row, l.of[rank])
				}
			}
			slices.SortStableFunc(row, func(a, b Sample) int { return cmp.Compare(a.clock, b.clock) })
			for _, x := range row {
				if len(out) < k && !slices.ContainsFunc(out, func(y Sample) bool { return math.Abs(y.clock-x.clock) <= apart*x.clock }) {
					out = append(out, x)
				}
			}
		}
	}
	return out
}
