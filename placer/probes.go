package placer

import (
	"math/rand/v2"
	"slices"
)

// probes are plans near the best one, of which only what their kernels take is asked
// and nothing is run: the levels that classes can have, a few classes in each plan,
// all in turn and once for each best plan.
type probes struct {
	FusionConfig
	classes *classes
	all     []int32 // [C levels] class levels + level, in the order in which they come
	next    int     // in all
	left    int     // of all, until the best plan changes
	asked   []int   // [C] number of the plan that had another level of the class last
	number  int     // of the last plan
}

func newProbes(c FusionConfig, x *classes, random *rand.Rand) *probes {
	p := &probes{FusionConfig: c, classes: x, asked: make([]int, len(x.ops))}
	for _, k := range random.Perm(len(x.ops) * c.Levels) {
		p.all = append(p.all, int32(k))
	}
	return p
}

// again says that there is another best plan.
func (p *probes) again() { p.left = len(p.all) }

// plans returns at most Probes plans beside fusion, [K][N].
func (p *probes) plans(fusion []uint8) (all [][]uint8) {
	size := max(1, int(p.Probed*float64(len(p.classes.ops))))
	for len(all) < p.Probes && p.left > 0 {
		one := slices.Clone(fusion)
		p.number++
		for n := 0; n < size && p.left > 0; {
			class, level := int(p.all[p.next])/p.Levels, uint8(int(p.all[p.next])%p.Levels)
			if p.asked[class] == p.number {
				break // its other level is for the next plan
			}
			p.left--
			p.next = (p.next + 1) % len(p.all)
			if level == fusion[p.classes.ops[class][0]] {
				continue
			}
			p.asked[class] = p.number
			n++
			for _, i := range p.classes.ops[class] {
				one[i] = level
			}
		}
		all = append(all, one)
	}
	return all
}

// probe returns what sets plans apart from the reference, [K].
func (e *environment) probe(plans [][]uint8) [][]difference {
	found := make([][]difference, len(plans))
	e.each(len(plans), func(w *worker, j int) {
		kernel, takes := w.evaluator.(locator).Fuse(e.reference.device, plans[j])
		found[j] = w.differences(nil, e.class, e.reference, plans[j], kernel, takes)
	})
	return found
}
