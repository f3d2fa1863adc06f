package sequential

import (
	"cmp"
	"slices"
)

// elite is a placement that is learned from.
type elite struct {
	kept
	of *trajectory // at the present level; nil before it is replayed
}

// selectElite keeps, of the placements of a round and of the elite before that are not
// too old, the best, one of each score.
func (r *tuning) selectElite(all []*elite, most int) {
	for _, x := range r.elite {
		if r.state.Step-x.Born <= r.pace.oldest {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *elite) int {
		if a.score().Better(b.score()) {
			return -1
		}
		if b.score().Better(a.score()) {
			return 1
		}
		return cmp.Compare(b.Born, a.Born)
	})
	r.elite = nil
	for _, x := range all {
		if n := len(r.elite); n < most && (n == 0 || r.elite[n-1].score() != x.score()) {
			r.elite = append(r.elite, x)
		}
	}
}
