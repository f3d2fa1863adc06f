package portfolio

import "placer/plan"

// explores reports whether walker w goes on from a plan of its own, as every second
// one does; the others go on from the best plan.
func explores(w int) bool { return w%2 == 1 }

// ownPlan is the plan of a walker that explores, from one arm that starts from nothing; its
// Device is nil before the walker has one.
type ownPlan struct {
	plan.Decision
	arm int
}

// fresh returns the number of arms that start from nothing.
func (r *run) fresh() (n int) {
	for i := range r.Arms {
		if !r.Arms[i].FromBest {
			n++
		}
	}
	return n
}

// choose returns the arm of each walker in round k.
func (r *run) choose(k int) []int {
	arms := make([]int, r.Walkers)
	taken := make([]bool, len(r.Arms)) // by walkers that use the best plan
	for w := range arms {
		free := taken
		if explores(w) {
			free = make([]bool, len(r.Arms))
		}
		if arms[w] = r.preferred(k, w, free); arms[w] < 0 { // fewer arms than walkers
			arms[w] = w % len(r.Arms)
		}
		taken[arms[w]] = taken[arms[w]] || !explores(w)
	}
	return arms
}

// preferred returns the arm that walker w prefers in round k of those not taken that suit
// it, or -1.
func (r *run) preferred(k, w int, taken []bool) int {
	best := -1
	for i := range r.Arms {
		if !taken[i] && r.suits(w, i) && (best < 0 || r.prefers(k, w, i, best)) {
			best = i
		}
	}
	return best
}

// suits reports whether walker w may pull arm i: one that explores goes on from its own
// plan, or anew where it has none, and where there is time for a single round the others
// begin with the best plan.
func (r *run) suits(w, i int) bool {
	if !explores(w) {
		return !r.once || r.Arms[i].FromBest || r.fresh() == len(r.Arms)
	}
	return r.Arms[i].FromBest == (r.own[w].Device != nil)
}

// prefers reports whether walker w pulls arm i in round k rather than j, which comes
// before it in the list.
func (r *run) prefers(k, w, i, j int) bool {
	a, b := &r.stats[i], &r.stats[j]
	anew := explores(w) && r.own[w].Device == nil
	if anew && (k/2+w/2)%2 == 1 && a.behind != b.behind { // every second time the one that came nearest
		return a.behind < b.behind
	}
	if x, y := a.due <= k, b.due <= k; x != y {
		return x
	}
	if a.credit != b.credit && !anew {
		return a.credit > b.credit
	}
	return a.due < b.due
}
