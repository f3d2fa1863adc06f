package trace

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/hw"
	"placer/sim"
	"placer/units"
)

// timeline is a trace as both formats draw it, in whole nanoseconds.
type timeline struct {
	tracks   []track
	counters []counter
}

// track is a row of slices that do not overlap, in order of time.
type track struct {
	name   string
	slices []slice
}

type slice struct {
	name       string
	begin, end int64
	bytes      int64    // of a transfer; 0 for ops
	flows      []uint64 // arrows that pass through the slice
}

type counter struct {
	name    string
	samples []sample
}

type sample struct{ at, value int64 }

func nanoseconds(s units.Seconds) int64 { return int64(math.Round(float64(s) * 1e9)) }

func newTimeline(t *sim.Trace, g *graph.Graph, m *hw.Machine) *timeline {
	tl := &timeline{}
	for _, d := range m.Devices {
		tl.tracks = append(tl.tracks, track{name: d.Name})
	}
	type place struct{ track, slice int }
	at := make([]place, g.NumOps())
	start := make([]units.Seconds, g.NumOps())
	device := make([]int, g.NumOps())
	for _, x := range t.Ops {
		tr := &tl.tracks[x.Device]
		at[x.Op], start[x.Op], device[x.Op] = place{x.Device, len(tr.slices)}, x.Start, x.Device
		for _, f := range x.Fused {
			at[f], start[f], device[f] = at[x.Op], x.Start, x.Device
		}
		tr.slices = append(tr.slices, slice{name: g.Op(x.Op).Name, begin: nanoseconds(x.Start), end: nanoseconds(x.End)})
	}
	arrow := func(op graph.OpID, id uint64) {
		s := &tl.tracks[at[op].track].slices[at[op].slice]
		s.flows = append(s.flows, id)
	}
	tracks := newTracks(tl, m)
	for k, x := range t.Transfers {
		id := uint64(k + 1)
		tracks.add(x, slice{name: transferName(g, x), begin: nanoseconds(x.Start), end: nanoseconds(x.End), bytes: int64(x.Bytes), flows: []uint64{id}})
		arrow(x.Op, id)
		if x.Tensor == sim.NoTensor {
			continue
		}
		first := graph.None
		for _, v := range g.Consumers(x.Tensor) {
			if device[v] == x.To && (first == graph.None || start[v] < start[first]) {
				first = v
			}
		}
		if first != graph.None {
			arrow(first, id)
		}
	}
	tracks.finish()
	for d, samples := range t.Memory {
		c := counter{name: m.Devices[d].Name + " memory"}
		for _, x := range samples {
			c.samples = append(c.samples, sample{nanoseconds(x.At), int64(x.Bytes)})
		}
		tl.counters = append(tl.counters, c)
	}
	return tl
}

func transferName(g *graph.Graph, x sim.TransferSpan) string {
	name := g.Op(x.Op).Name
	if x.Tensor == sim.NoTensor {
		return "control of " + name
	}
	if first, end := g.Outputs(x.Op); end-first > 1 {
		return fmt.Sprintf("%s:%d", name, x.Tensor-first)
	}
	return name
}

// tracks gives every pair of devices as many tracks as it has transfers at once.
type tracks struct {
	tl    *timeline
	m     *hw.Machine
	pairs [][]pairTrack // [D*D]
}

type pairTrack struct {
	free units.Seconds
	track
}

func newTracks(tl *timeline, m *hw.Machine) *tracks {
	return &tracks{tl, m, make([][]pairTrack, m.NumDevices()*m.NumDevices())}
}

func (l *tracks) add(x sim.TransferSpan, s slice) {
	pair := &l.pairs[x.From*l.m.NumDevices()+x.To]
	for k := range *pair {
		if ln := &(*pair)[k]; ln.free <= x.Start {
			ln.free, ln.slices = x.End, append(ln.slices, s)
			return
		}
	}
	name := l.m.Devices[x.From].Name + " to " + l.m.Devices[x.To].Name
	if n := len(*pair); n > 0 {
		name = fmt.Sprintf("%s (%d)", name, n+1)
	}
	*pair = append(*pair, pairTrack{x.End, track{name, []slice{s}}})
}

func (l *tracks) finish() {
	for _, pair := range l.pairs {
		for _, ln := range pair {
			l.tl.tracks = append(l.tl.tracks, ln.track)
		}
	}
}
