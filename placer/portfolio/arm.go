package portfolio

import (
	"math"

	"placer/plan"
)

// Arm is one way to spend a slice of the budget. A pull of it is a run of a method of its
// own, with a random stream of its own.
type Arm struct {
	Name string
	// FromBest says that a pull starts from the best plan of all arms. Others start from
	// nothing, and differ from pull to pull by their random streams and their slices.
	FromBest bool
	// New returns the method of one pull by a walker. Of start, Device is nil for an arm that
	// is not FromBest. The pulls of one walker come one after another, those of several at
	// once: what an arm remembers from pull to pull it remembers for each walker.
	New func(start plan.Decision, walker int) (plan.Placer, error)
}

// armStats is what an arm has done so far.
type armStats struct {
	pulls, evaluations int
	// credit is the sum of the logarithms by which pulls shortened the best plan: those of
	// the last round count half, those of the one before a quarter, and so on.
	credit  float64
	misses  int     // pulls in a row that brought nothing
	due     int     // round from which on the arm is tried again though it brought nothing
	brought float64 // sum of the logarithms
	// behind is, of an arm from nothing, the logarithm by which the best plan was ahead of
	// what its last plan had come to when somebody had gone on from it; +Inf before.
	behind float64
}

// pulled notes what a pull of round r brought: the logarithm of the share by which the best
// plan got shorter. An arm that brings nothing rests for a round, then for two, three, and
// so on, and a pull that brings something ends that.
func (s *armStats) pulled(r int, gain float64) {
	s.pulls++
	s.credit += gain / 2
	s.brought += gain
	if gain > 0 {
		s.misses, s.due = 0, r+1
		return
	}
	s.misses++
	s.due = r + 1 + s.misses
}

// addCredit credits the arm with what another has made of its plan in round r.
func (s *armStats) addCredit(r int, gain float64) {
	s.credit += gain / 2
	s.misses, s.due = 0, r+1
}

// gain returns the logarithm of the share by which after is shorter than before, at least
// 0. To become feasible counts as a halving.
func gain(before, after plan.Score) float64 {
	switch {
	case !after.Better(before):
		return 0
	case before.Overflow > after.Overflow || before.Value <= 0 || after.Value <= 0:
		return math.Ln2
	}
	return math.Log(before.Value / after.Value)
}
