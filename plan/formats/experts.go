package formats

import (
	"slices"
	"strings"

	"placer/graph"
	"placer/hw"
)

// Role is what an op is to the experts of its part, of which each token takes a few.
type Role uint8

// Roles of ops.
const (
	NoExpert      Role = iota
	ExpertProduct      // computes with an expert's weights
	ExpertWeights      // holds them, or passes them on as they are
)

// roles returns the role of each op of g, [N]; nil where no module is an expert.
func roles(g *graph.Graph) []Role {
	var of []Role
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if !slices.Contains(strings.Split(o.Module, "."), "experts") {
			continue
		}
		if of == nil {
			of = make([]Role, g.NumOps())
		}
		of[i] = ExpertProduct
		switch o.Kind.Class() {
		case graph.ClassVariable, graph.ClassConst:
			of[i] = ExpertWeights
		case graph.ClassMeta:
			if in := g.Inputs(i); len(in) > 0 && !slices.ContainsFunc(in, func(t graph.TensorID) bool { return of[g.Tensor(t).Producer] != ExpertWeights }) {
				of[i] = ExpertWeights
			}
		}
	}
	return of
}

// HasExperts reports whether part k has experts.
func (p *Parts) HasExperts(k int) bool { return p.experts != nil && p.experts[k] }

// Tokens returns the rows of the largest matrix that g's experts read of what lies outside of
// them: the tokens of the step. It is 0 where there are no experts.
func (p *Parts) Tokens(g *graph.Graph) (rows int64) {
	for i, r := range p.Role {
		if r != ExpertProduct {
			continue
		}
		for _, t := range g.Inputs(graph.OpID(i)) {
			if x := g.Tensor(t); p.Role[x.Producer] == NoExpert && len(x.Shape) > 1 {
				rows = max(rows, x.Shape[0])
			}
		}
	}
	return rows
}

// Spread returns the device of each op, [N]. Ops of a co-location group follow the first
// of them.
func (s *Split) Spread() []uint8 {
	apart := map[int]uint8{}
	for j, d := range s.Tensors {
		apart[int(s.Parts.Tensors[j].Op)] = d
	}
	return s.Parts.spread(s.Graph, func(i int) uint8 {
		if d, ok := apart[i]; ok {
			return d
		}
		k := s.Parts.Of[i]
		d := s.Device[k]
		if s.Experts == nil || s.Parts.Role == nil || s.Parts.Role[i] == NoExpert || s.Experts[k] == d {
			return d
		}
		if s.Sent && s.Parts.Role[i] == ExpertProduct && s.Machine.Devices[s.Experts[k]].Kind != hw.GPU {
			return s.Machine.Accelerators()[0]
		}
		return s.Experts[k]
	})
}

// Nearest returns the placement of the parts of g in which each is on the device that runs
// most of it under a placement of the ops, [N], weighed by seconds as Majority says. What a
// map has no name for, one of several CPUs, is on the CPU that it has. Where t may have layers
// on the host, experts that are mostly there, by bytes, stay there.
func (t *Target) Nearest(g *graph.Graph, m *hw.Machine, parts *Parts, device []uint8, seconds []float64) *Split {
	s := &Split{Graph: g, Machine: m, Parts: parts}
	host := m.Host()
	if !t.Host || parts.Role == nil || host < 0 {
		s.Device = parts.Majority(device, seconds)
		for k, d := range s.Device {
			if !t.Takes(m, d) {
				s.Device[k] = theCPU(m)
			}
		}
		return s
	}
	of := func(role Role, weight func(i int) float64) []uint8 {
		return parts.majority(device, func(i int) float64 {
			if parts.Role[i] != role {
				return 0
			}
			return weight(i)
		})
	}
	s.Device = of(NoExpert, func(i int) float64 {
		if seconds == nil {
			return 1
		}
		return seconds[i]
	})
	weights := of(ExpertWeights, func(i int) float64 { return float64(g.Op(graph.OpID(i)).Resident) })
	products := of(ExpertProduct, func(int) float64 { return 1 })
	sent, there := 0, 0
	for k, d := range weights {
		if !parts.HasExperts(k) || int(d) != host || s.Device[k] == d {
			continue
		}
		if s.Experts == nil {
			s.Experts = slices.Clone(s.Device)
		}
		s.Experts[k] = d
		if products[k] == d {
			there++
		} else {
			sent++
		}
	}
	s.Sent = sent > there
	return s
}
