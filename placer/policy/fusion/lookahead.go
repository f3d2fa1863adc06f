package fusion

import (
	"math/rand/v2"
	"slices"
)

// lookahead lists plans near the best one, of which only the kernels are priced: the
// levels that classes can have, a few classes in each plan, all in turn and once for
// each best plan.
type lookahead struct {
	classes int
	all     []int32 // [C levels] class levels + level, in the order in which they come
	next    int     // in all
	left    int     // of all, until the best plan changes
	asked   []int   // [C] number of the plan that had another level of the class last
	number  int     // of the last plan
}

// aheadShare is the share of classes whose level is another in a plan.
const aheadShare = 0.02

func newLookahead(x *classes, random *rand.Rand) *lookahead {
	p := &lookahead{classes: len(x.ops), asked: make([]int, len(x.ops))}
	for _, k := range random.Perm(len(x.ops) * levels) {
		p.all = append(p.all, int32(k))
	}
	return p
}

// again says that there is another best plan.
func (p *lookahead) again() { p.left = len(p.all) }

// plans returns at most most decisions beside level, [C] each.
func (p *lookahead) plans(level []int32, most int) (all [][]int32) {
	size := max(1, int(aheadShare*float64(p.classes)))
	for len(all) < most && p.left > 0 {
		one := slices.Clone(level)
		p.number++
		for n := 0; n < size && p.left > 0; {
			class, other := p.all[p.next]/levels, p.all[p.next]%levels
			if p.asked[class] == p.number {
				break // its other level is for the next plan
			}
			p.left--
			p.next = (p.next + 1) % len(p.all)
			if other == level[class] {
				continue
			}
			p.asked[class] = p.number
			n++
			one[class] = other
		}
		all = append(all, one)
	}
	return all
}
