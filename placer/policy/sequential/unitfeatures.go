package sequential

import (
	"math"

	"placer/graph/unit"
)

// unitFacts are what the features of a unit are made of, beside the instance.
type unitFacts struct {
	s *instance
	u int32

	own        float64 // seconds, above 0
	before     float64 // longest way to the unit's begin, in seconds
	after      float64 // longest way from the unit's begin to the end, in seconds
	place      float64 // share of the work that is decided before the middle of the unit
	pieces     float64 // nodes
	exchanged  float64 // seconds of what it exchanges
	neighbours float64 // units that it exchanges with

	// Of the graph and the machine:
	n        float64 // units
	span     float64 // longest way through the graph, in seconds
	traffic  float64 // seconds of all exchanges
	resident float64 // bytes of all units
	memory   float64 // bytes of all devices
	latency  float64 // of a transfer, in seconds
}

// unitFeatures are the features of a unit that no decision changes, in the order in
// which policies read them.
var unitFeatures = []feature[unitFacts]{
	{"share", ofUnit, "work over the mean unit's", func(f *unitFacts) float32 { return squash(f.own / f.s.total * f.n) }},
	{"load", ofUnit, "work over a device's mean load", func(f *unitFacts) float32 { return squash(4 * f.own / f.s.mean) }},
	{"forward", ofUnit, "whether it is of the forward pass", func(f *unitFacts) float32 { return f.role(unit.Forward) }},
	{"backward", ofUnit, "whether it is of the backward pass", func(f *unitFacts) float32 { return f.role(unit.Backward) }},
	{"weights", ofUnit, "whether it holds variables and their updates", func(f *unitFacts) float32 { return f.role(unit.Weights) }},
	{"before", ofUnit, "longest way to it over the longest way", func(f *unitFacts) float32 { return float32(f.before / f.span) }},
	{"after", ofUnit, "longest way from it over the longest way", func(f *unitFacts) float32 { return float32(f.after / f.span) }},
	{"slack", ofUnit, "what the way through it lacks of the longest way", func(f *unitFacts) float32 { return float32(1 - (f.before+f.after)/f.span) }},
	{"place", ofUnit, "share of the work that is decided before it", func(f *unitFacts) float32 { return float32(f.place) }},
	{"exchange", ofUnit, "time of its transfers over its work", func(f *unitFacts) float32 { return squash(f.exchanged / f.own) }},
	{"exchange_of_load", ofUnit, "time of its transfers over a device's mean load", func(f *unitFacts) float32 { return squash(8 * f.exchanged / f.s.mean) }},
	{"resident", ofUnit, "bytes that it keeps over a device's memory", func(f *unitFacts) float32 {
		return squash(8 * float64(f.s.resident[f.u]) / float64(f.s.memory[0]))
	}},
	{"chain_load", ofUnit, "its chain's work over a device's mean load", func(f *unitFacts) float32 { return squash(f.groupLoad(byChain)) }},
	{"chain_place", ofUnit, "where in its chain it is, by work", func(f *unitFacts) float32 { return float32(f.s.groups[byChain].place[f.u]) }},
	{"segment_load", ofUnit, "its segment's work over a device's mean load", func(f *unitFacts) float32 { return squash(2 * f.groupSeconds(bySegment) / f.s.mean) }},
	{"segment_place", ofUnit, "where in its segment it is, by work", func(f *unitFacts) float32 { return float32(f.s.groups[bySegment].place[f.u]) }},
	{"layer_load", ofUnit, "its layer's work over a device's mean load", func(f *unitFacts) float32 { return squash(f.groupLoad(byLayer)) }},
	{"layer_place", ofUnit, "its layer's number over the last layer's", func(f *unitFacts) float32 {
		layers := f.s.groups[byLayer]
		return float32(float64(layers.of[f.u]) / float64(max(1, len(layers.seconds)-1)))
	}},
	{"neighbours", ofUnit, "logarithm of the number of units that it exchanges with", func(f *unitFacts) float32 { return logarithm(f.neighbours) }},
	{"pieces", ofUnit, "logarithm of the number of its nodes", func(f *unitFacts) float32 { return logarithm(f.pieces) }},
	{"devices_inverse", ofGraph, "one over the number of devices", func(f *unitFacts) float32 { return float32(1 / float64(f.s.d)) }},
	{"parallel", ofGraph, "the graph's work over its longest way and the devices", func(f *unitFacts) float32 { return squash(f.s.total / f.span / float64(f.s.d)) }},
	{"traffic", ofGraph, "the graph's transfers over its work", func(f *unitFacts) float32 { return squash(f.traffic / f.s.total) }},
	{"memory", ofGraph, "the graph's resident bytes over the machine's memory", func(f *unitFacts) float32 { return float32(min(2, f.resident/f.memory)) }},
	{"latency", ofGraph, "a transfer's latency over the mean unit's work", func(f *unitFacts) float32 { return squash(f.latency / f.s.total * f.n) }},
	{"cell", ofGraph, "whether units are cells", func(f *unitFacts) float32 { return indicator(f.s.level == unit.Cell) }},
	{"segment", ofGraph, "whether units are segments", func(f *unitFacts) float32 { return indicator(f.s.level == unit.Segment) }},
}

var numUnitFeatures = len(unitFeatures)

var unitRows = rowsOf(unitFeatures)

func (f *unitFacts) role(r unit.Role) float32 { return indicator(f.s.is(f.u, r)) }

// groupSeconds returns the work of f's group of a kind.
func (f *unitFacts) groupSeconds(kind int) float64 {
	g := &f.s.groups[kind]
	return g.seconds[g.of[f.u]]
}

// groupLoad returns the work of f's group of a kind over a device's mean load.
func (f *unitFacts) groupLoad(kind int) float64 { return f.groupSeconds(kind) / f.s.mean }

// logarithm brings a count near the range of the other features.
func logarithm(count float64) float32 { return float32(math.Log2(1+count) / 8) }

// describe computes the unit features.
func (s *instance) describe() {
	n, up, down := s.part.NumUnits(), s.up, s.down
	f := unitFacts{s: s, n: float64(n), span: 1e-12}
	before, after, pieces := make([]float64, n), make([]float64, n), make([]float64, n)
	for u := range before {
		before[u] = math.Inf(1)
	}
	for v, u := range s.unit {
		f.span = max(f.span, down[v]+up[v])
		before[u], after[u] = min(before[u], down[v]), max(after[u], up[v])
		pieces[u]++
	}
	for u, b := range s.resident {
		f.resident += float64(b)
		_, seconds := s.exchanges.Neighbours(int32(u))
		for _, x := range seconds {
			f.traffic += x / 2
		}
	}
	for _, m := range s.memory {
		f.memory += float64(m)
	}
	f.latency = float64(s.wire.latency)
	places := s.places()
	s.features = make([]float32, n*numUnitFeatures)
	for u := range n {
		neighbours, seconds := s.exchanges.Neighbours(int32(u))
		f.u, f.own, f.neighbours, f.exchanged = int32(u), max(s.own[u], 1e-12), float64(len(neighbours)), 0
		for _, x := range seconds {
			f.exchanged += x
		}
		f.before, f.after, f.pieces, f.place = before[u], after[u], pieces[u], places[u]
		row := s.features[u*numUnitFeatures : (u+1)*numUnitFeatures]
		if u == 0 {
			unitRows.first(&f, row)
		} else {
			unitRows.next(&f, s.features, row)
		}
	}
}

// places returns, for each unit, the share of the work that is decided before
// it, and half its own, [U].
func (s *instance) places() []float64 {
	at, sum := make([]float64, s.part.NumUnits()), 0.0
	for _, u := range s.decided() {
		at[u] = (sum + s.own[u]/2) / s.total
		sum += s.own[u]
	}
	return at
}
