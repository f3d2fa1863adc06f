package corpus

import (
	"math"
	"slices"
)

// Summary says what a corpus holds.
type Summary struct {
	Problems, Families           int
	Unfit                        int // plans that do not fit
	LeastOps, MedianOps, MostOps int
	// ToExpert and ToOneDevice are the plans' steps over the expert's and over one device's,
	// in the geometric mean of the problems in which both fit; 1 where there are none.
	ToExpert, ToOneDevice float64
	CPUSeconds            float64 // mean of a label
}

// Summary returns that of c, which has problems.
func (c *Corpus) Summary() Summary {
	s := Summary{Problems: len(c.Problems), ToExpert: 1, ToOneDevice: 1}
	families := map[string]bool{}
	var ops []int
	var toExpert, toOne mean
	for i := range c.Problems {
		x := &c.Problems[i]
		families[x.Families[0]] = true
		ops = append(ops, x.Ops)
		s.CPUSeconds += x.CPUSeconds / float64(len(c.Problems))
		if !x.Fits() {
			s.Unfit++
			continue
		}
		toExpert.add(x.Best, x.Expert)
		toOne.add(x.Best, x.OneDevice)
	}
	slices.Sort(ops)
	s.Families, s.LeastOps, s.MedianOps, s.MostOps = len(families), ops[0], ops[len(ops)/2], ops[len(ops)-1]
	s.ToExpert, s.ToOneDevice = toExpert.value(), toOne.value()
	return s
}

// mean is a geometric mean of ratios.
type mean struct {
	sum float64
	n   int
}

// add adds the ratio of a to b unless b does not fit.
func (m *mean) add(a, b Score) {
	if b.Overflow == 0 {
		m.sum += math.Log(a.Seconds / b.Seconds)
		m.n++
	}
}

func (m *mean) value() float64 { return math.Exp(m.sum / float64(max(1, m.n))) }
