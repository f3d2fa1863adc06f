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

// Groups returns the groups of ranks of m that run a collective like c at once on its stage, each
// in the order of its ring.
func (m Mesh) Groups(c Collective) (groups [][]int) {
	if c.Axis == TensorAxis {
		for d := range m.Data {
			g := make([]int, m.Tensor)
			for t := range g {
				g[t] = m.Rank(d, c.Stage, t)
			}
			groups = append(groups, g)
		}
		return groups
	}
	if c.Axis == NormAxis {
		for d := range m.Ranks() / c.Ranks {
			var g []int
			for r := range m.Ranks() {
				if c.Ranks == m.Ranks() || r/m.Tensor%m.Data == d {
					g = append(g, r)
				}
			}
			groups = append(groups, g)
		}
		return groups
	}
	if c.Axis == StageAxis {
		for d := range m.Data {
			for t := range m.Tensor {
				var g []int
				for stage := range m.Pipeline {
					if c.On(stage) {
						g = append(g, m.Rank(d, stage, t))
					}
				}
				groups = append(groups, g)
			}
		}
		return groups
	}
	// Of the replicas, c.Ranks form a group: neighbours, or those so many apart.
	n, between := m.Data/c.Ranks, 1
	if c.Axis == ReplicaAxis {
		between = n
	}
	for t := range m.Tensor {
		for k := range n {
			g := make([]int, c.Ranks)
			from := k * c.Ranks
			if c.Axis == ReplicaAxis {
				from = k
			}
			for at := range g {
				g[at] = m.Rank(from+at*between, c.Stage, t)
			}
			groups = append(groups, g)
		}
	}
	return groups
}
