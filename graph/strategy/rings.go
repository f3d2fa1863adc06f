package strategy

import (
	"placer/graph"
)

// Rings returns the graph of one collective c of each of groups at once, nothing else: what a ring takes on
// a machine on which others run beside it. A group lists its ranks in the order of the
// ring; c.Ranks is their number.
func Rings(c Collective, groups [][]int) (*Step, error) {
	e := &emitter{b: graph.NewBuilder("rings"), step: &Step{}, micro: -1}
	for _, g := range groups {
		members := make([]member, len(g))
		for k, r := range g {
			members[k].rank = r
		}
		e.collective(c, "alone", members)
	}
	var err error
	if e.step.Graph, err = e.b.Build(); err != nil {
		return nil, err
	}
	e.reorder(e.b.Order())
	return e.step, nil
}

// Groups returns the groups of ranks of m along an axis on one stage, each in the order of
// its ring.
func (m Mesh) Groups(a Axis, stage int) (groups [][]int) {
	outer, inner := m.Tensor, m.Data
	if a == TensorAxis {
		outer, inner = m.Data, m.Tensor
	}
	for o := range outer {
		g := make([]int, inner)
		for k := range g {
			if a == TensorAxis {
				g[k] = m.Rank(o, stage, k)
			} else {
				g[k] = m.Rank(k, stage, o)
			}
		}
		groups = append(groups, g)
	}
	return groups
}
