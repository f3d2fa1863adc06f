package anneal

import (
	"math"
	"math/rand/v2"
)

// lookahead sees the number that a source gives next.
type lookahead struct {
	source, twin *rand.PCG
	rng          *rand.Rand // of twin
}

func newLookahead(source *rand.PCG) *lookahead {
	twin := new(rand.PCG)
	return &lookahead{source, twin, rand.New(twin)}
}

// accepted returns a cost above which a walk at cost takes no move at temperature, a
// fraction of the cost, if it decides by the next number.
func (l *lookahead) accepted(cost, temperature float64) float64 {
	*l.twin = *l.source
	const rounding = 1e-9
	return cost * (1 - temperature*math.Log(l.rng.Float64())) * (1 + rounding)
}
