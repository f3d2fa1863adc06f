package times

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/internal/words"
	"placer/units"
)

// Table is the measured side of one graph.
type Table struct {
	GraphHash string
	Source    string // where the times come from, for the reader
	Models    []Model
	// Transfer is the time to move each tensor between a device and the host's
	// memory, [T]; nil where the file gives bytes and a bandwidth alone.
	Transfer []float64
	// Bandwidth is that of a device's connection, in bytes a second, and Latency
	// its delay in seconds.
	Bandwidth, Latency float64
	// Uncontended says that transfers never wait for one another.
	Uncontended bool
	// Issue is what the host takes to issue the ops of a step, in seconds; 0 where it is in
	// Seconds or not known. Predictions leave it out.
	Issue float64
}

// Model is one kind of device, and how many of it the file's machine has.
type Model struct {
	Name   string
	CPU    bool // holds the host's memory: it pays no communication
	Count  int
	Memory units.Bytes
	// Seconds of each op, [N]: not negative; +Inf for an op that cannot run there.
	Seconds []float64
}

// Check reports the first contradiction between the table and g.
func (t *Table) Check(g *graph.Graph) error {
	if t.GraphHash != g.Hash() {
		return fmt.Errorf("times are for graph %.12s, not for %s (%.12s)", t.GraphHash, g.Name(), g.Hash())
	}
	if len(t.Models) == 0 {
		return fmt.Errorf("times of %s name no device", g.Name())
	}
	names := map[string]bool{}
	for _, m := range t.Models {
		if m.Name == "" || names[m.Name] || m.Count < 0 || m.Memory <= 0 {
			return fmt.Errorf("device model %q: its name is empty or taken, its number %d negative or its memory %d not positive", m.Name, m.Count, m.Memory)
		}
		names[m.Name] = true
		if len(m.Seconds) != g.NumOps() {
			return fmt.Errorf("device model %s: %s for %s", m.Name, words.Count(len(m.Seconds), "time", "times"), words.Count(g.NumOps(), "op", "ops"))
		}
		for i, s := range m.Seconds {
			if !(s >= 0) {
				return fmt.Errorf("device model %s: op %d (%s) takes %v s", m.Name, i, g.Op(graph.OpID(i)).Name, s)
			}
		}
	}
	if !(t.Issue >= 0) || math.IsInf(t.Issue, 1) {
		return fmt.Errorf("a step's ops are issued in %v s", t.Issue)
	}
	if t.Transfer != nil && len(t.Transfer) != g.NumTensors() {
		return fmt.Errorf("%s for %s", words.Count(len(t.Transfer), "transfer time", "transfer times"), words.Count(g.NumTensors(), "tensor", "tensors"))
	}
	for k, s := range t.Transfer {
		if !(s >= 0) || math.IsInf(s, 0) {
			return fmt.Errorf("tensor %d takes %v s to move", k, s)
		}
	}
	if !(t.Bandwidth > 0) || math.IsInf(t.Bandwidth, 0) || !(t.Latency >= 0) || math.IsInf(t.Latency, 0) {
		return fmt.Errorf("bandwidth %v and latency %v of %s, want a positive and a non-negative finite number", t.Bandwidth, t.Latency, g.Name())
	}
	return nil
}

// model returns the model of that name, or nil.
func (t *Table) model(name string) *Model {
	for k := range t.Models {
		if t.Models[k].Name == name {
			return &t.Models[k]
		}
	}
	return nil
}

// On returns the copy of t whose machine has n accelerators.
func (t *Table) On(n int) *Table {
	u := *t
	u.Models = append([]Model(nil), t.Models...)
	for k := range u.Models {
		if !u.Models[k].CPU {
			u.Models[k].Count, n = n, 0
		}
	}
	return &u
}

// shortest and longest bound the times that a simulator is given: it wants
// positive finite ones. An op that takes no time takes shortest, one that cannot
// run on a device takes longest, so that no sensible placement puts it there.
const (
	shortest units.Seconds = 1e-12
	longest  units.Seconds = 1e6
)

// Cost is the table as a cost model of the simulator: rows are the models of
// the machine's devices.
type Cost struct{ rows []*Model }

// OpSeconds returns the time of op i on device d.
func (c *Cost) OpSeconds(i graph.OpID, d int) units.Seconds {
	return min(max(units.Seconds(c.rows[d].Seconds[i]), shortest), longest)
}
