package problem

import (
	"placer/graph"
	"placer/graph/formats/times"
	"placer/hw"
	"placer/roofline"
	"placer/sim"
	"placer/units"
)

// Source is a graph with what its file says of op times. The zero fields stand for
// a file that says nothing: the roofline model of the default settings.
type Source struct {
	*graph.Graph
	// Times are measured times by kind of device; nil: none.
	Times *times.Table
	// Seconds are the op times that the file gives for any device, [N]; nil: none.
	Seconds []units.Seconds
	// Roofline are the settings of the roofline model; nil: the default ones.
	Roofline *roofline.Config
}

// Costs returns the times of s's ops on the devices of m: the file's where it has
// them, or else the roofline model's.
func (s Source) Costs(m *hw.Machine) (sim.CostModel, error) {
	switch {
	case s.Times != nil:
		c, err := s.Times.For(m)
		if err != nil {
			return nil, err // not a nil *times.Costs as an interface
		}
		return c, nil
	case s.Seconds != nil:
		return givenTimes(s.Seconds), nil
	case s.Roofline != nil:
		return roofline.New(s.Graph, m, *s.Roofline)
	}
	return roofline.New(s.Graph, m, roofline.Default())
}

// Contention returns what name says or, where it is empty, what s's file implies.
func (s Source) Contention(name string) (sim.Contention, error) {
	if name != "" {
		return sim.ParseContention(name)
	}
	if s.Times != nil && s.Times.Uncontended {
		return sim.Uncontended, nil
	}
	return sim.Default().Contention, nil
}

// givenTimes are times that do not depend on the device.
type givenTimes []units.Seconds

// OpSeconds implements sim.CostModel. The simulator wants times above 0; files
// round to microseconds.
func (t givenTimes) OpSeconds(op graph.OpID, _ int) units.Seconds { return max(t[op], 1e-9) }
