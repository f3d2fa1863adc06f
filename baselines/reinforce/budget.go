package reinforce

import "placer/plan"

// Spent returns the share of p's budget that evaluations, made since the clock
// read start, have used up, at most 1; 0 where nothing bounds p.
func Spent(p *plan.Problem, start float64, evaluations int) float64 {
	share := 0.0
	if n := p.Budget.Evaluations; n > 0 {
		share = float64(evaluations) / float64(n)
	}
	if s := p.Budget.Seconds; s > 0 && p.Clock != nil {
		share = max(share, (p.Clock()-start)/s)
	}
	return min(share, 1)
}

// Samples returns the samples of a round, fewer than most where a small budget
// would else have less than a few rounds.
func Samples(p *plan.Problem, most int) int {
	k := most
	for n := p.Budget.Evaluations; n > 0 && k > 2 && k*8 > n; {
		k /= 2
	}
	return k
}
