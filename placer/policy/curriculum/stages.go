package curriculum

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
)

// Stage is one granularity of a policy's training.
type Stage struct {
	Name  string
	Units *unit.Partition
	Chain *unit.Partition // gives a unit its place among its like
	Share float64         // of the budget, relative to the other stages
	// OneFusion has one choice of fusion for all units.
	OneFusion bool
	// Near is a placement to begin at where nothing is learnt yet, [N]; nil: none.
	Near []uint8
}

// Curricula returns the ways to train a policy that decides at level l: lists of
// stages, coarse to fine.
//
// By layer: first a forward chain together with its gradients and the weights
// that nobody else reads, then chains, and so on down to l. It suits unrolled
// networks, whose layers run side by side.
//
// By position: first blocks of consecutive cells with their gradients and
// weights, then more and shorter ones with the three apart, then cells if l asks
// for them. It suits deep networks: a cut in the middle pays only when a whole
// half moves, which sampling single layers never finds.
//
// By module: first every forward cell together with its gradients and weights,
// from the first sample on, then cells, or chains if l is no finer. It suits
// networks of many branches, which the cuts of the others tie together.
//
// Units too small to matter belong to the neighbour that they exchange most bytes
// with.
func Curricula(g *graph.Graph, h *unit.Hierarchy, l unit.Level, seconds []float64, devices int) [][]Stage {
	m := maker{g, h, seconds, l}
	layers := m.whole(unit.Chain)
	return [][]Stage{m.byLayer(layers), m.byPosition(devices), m.byModule(layers)}
}

// maker makes the curricula of a graph.
type maker struct {
	graph     *graph.Graph
	hierarchy *unit.Hierarchy
	seconds   []float64  // [N]
	level     unit.Level // of the finest decisions
}

// Units that take a smaller share of the whole time join a neighbour: of those that hold
// a forward part with its gradients and weights, and of others.
const (
	leastWhole = 1e-3
	leastShare = 1e-4
)

// whole returns the units of level l, each with its gradients and weights.
func (m maker) whole(l unit.Level) *unit.Partition {
	j := newJoiner(m.graph, m.hierarchy.Levels[l], m.seconds)
	j.joinCounterparts(m.hierarchy, l)
	j.absorb(leastWhole)
	return j.partition()
}

// finer adds a stage of the units of a level, with a share of the budget, unless they are
// no more than those of the last stage. Its chains are the units of the first.
func (m maker) finer(stages []Stage, at unit.Level, share float64) []Stage {
	j := newJoiner(m.graph, m.hierarchy.Levels[at], m.seconds)
	if at > unit.Op {
		j.absorb(leastShare)
	}
	p := j.partition()
	if p.NumUnits() <= last(stages).Units.NumUnits() {
		return stages
	}
	return append(stages, Stage{Name: at.String(), Units: p, Chain: stages[0].Units, Share: share})
}

func (m maker) byLayer(layers *unit.Partition) []Stage {
	stages := []Stage{{Name: "layer", Units: layers, Chain: layers, Share: 3, OneFusion: true}}
	share := map[unit.Level]float64{unit.Chain: 4, unit.Segment: 2, unit.Cell: 1, unit.Op: 1}
	for at := unit.Chain; ; at-- {
		stages = m.finer(stages, at, share[at])
		if at == m.level {
			return stages
		}
	}
}

func (m maker) byPosition(devices int) []Stage {
	p := newPositions(m.graph, m.hierarchy, m.seconds)
	blocks := p.blocks(blocksPerDevice * devices)
	stages := []Stage{{Name: "block", Units: blocks, Chain: blocks, Share: 2, OneFusion: true}}
	if x := p.stretches(4 * blocksPerDevice * devices); x.NumUnits() > blocks.NumUnits() {
		stages = append(stages, Stage{Name: "stretch", Units: x, Chain: blocks, Share: 4})
	}
	if m.level <= unit.Cell {
		stages = m.finer(stages, unit.Cell, 3)
	}
	if m.level == unit.Op {
		stages = m.finer(stages, unit.Op, 2)
	}
	return stages
}

func (m maker) byModule(layers *unit.Partition) []Stage {
	modules := m.whole(unit.Cell)
	stages := []Stage{{Name: "module", Units: modules, Chain: layers, Share: 3, OneFusion: true}}
	stages = m.finer(stages, max(m.level, unit.Cell), 4)
	if m.level == unit.Op {
		stages = m.finer(stages, unit.Op, 2)
	}
	return stages
}

// Near are stages with the ops of a unit apart that device, [N], puts on
// different ones of n devices; what begins with one of them begins at device.
func Near(stages []Stage, device []uint8, n int) []Stage {
	near := slices.Clone(stages)
	for k, s := range near {
		label := make([]int, len(device))
		for i, u := range s.Units.Of {
			label[i] = int(u)*n + int(device[i])
		}
		near[k].Name += " near"
		near[k].Units = number(label, s.Units.NumUnits()*n)
		near[k].Near = device
	}
	return near
}

// blocksPerDevice blocks a device are few enough to sample all cuts, and enough
// to balance them.
const blocksPerDevice = 4
