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
	coarse := newJoiner(g, h.Levels[unit.Chain], seconds)
	coarse.joinCounterparts(h, unit.Chain)
	coarse.absorb(1e-3)
	layers := coarse.partition()
	byLayer := []Stage{{Name: "layer", Units: layers, Chain: layers, Share: 3, OneFusion: true}}
	grow := func(stages []Stage, at unit.Level, share float64) []Stage {
		j := newJoiner(g, h.Levels[at], seconds)
		if at > unit.Op {
			j.absorb(1e-4)
		}
		if p := j.partition(); p.NumUnits() > stages[len(stages)-1].Units.NumUnits() {
			return append(stages, Stage{Name: at.String(), Units: p, Chain: stages[0].Units, Share: share})
		}
		return stages
	}
	for at := unit.Chain; ; at-- {
		byLayer = grow(byLayer, at, map[unit.Level]float64{unit.Chain: 4, unit.Segment: 2, unit.Cell: 1, unit.Op: 1}[at])
		if at == l {
			break
		}
	}
	blocks := positionBlocks(g, h, seconds, blocksPerDevice*devices, false)
	byPosition := []Stage{{Name: "block", Units: blocks, Chain: blocks, Share: 2, OneFusion: true}}
	if p := positionBlocks(g, h, seconds, 4*blocksPerDevice*devices, true); p.NumUnits() > blocks.NumUnits() {
		byPosition = append(byPosition, Stage{Name: "stretch", Units: p, Chain: blocks, Share: 4})
	}
	if l <= unit.Cell {
		byPosition = grow(byPosition, unit.Cell, 3)
	}
	if l == unit.Op {
		byPosition = grow(byPosition, unit.Op, 2)
	}
	fine := newJoiner(g, h.Levels[unit.Cell], seconds)
	fine.joinCounterparts(h, unit.Cell)
	fine.absorb(1e-3)
	modules := fine.partition()
	byModule := grow([]Stage{{Name: "module", Units: modules, Chain: layers, Share: 3, OneFusion: true}}, max(l, unit.Cell), 4)
	if l == unit.Op {
		byModule = grow(byModule, unit.Op, 2)
	}
	return [][]Stage{byLayer, byPosition, byModule}
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
