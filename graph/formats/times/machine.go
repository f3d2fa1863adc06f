package times

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"placer/hw"
	"placer/units"
)

// delay stands for the latency of a connection whose file gives none: the
// simulator wants a positive one.
const delay units.Seconds = 1e-12

// Machine returns the machine that the file speaks of: its devices, each joined
// to the host's memory. Figures that no file gives are 1: with a table nobody
// asks for them.
func (t *Table) Machine() (*hw.Machine, error) {
	var spokes []hw.Spokes
	total := 0
	for _, m := range t.Models {
		if m.Count == 0 {
			continue
		}
		kind, prefix := hw.GPU, "gpu:"
		if m.CPU {
			kind, prefix = hw.CPU, "cpu:"
		}
		spokes = append(spokes, hw.Spokes{Count: m.Count, Device: hw.Device{
			Name: prefix, Model: m.Name, Kind: kind, Memory: m.Memory, MemoryBandwidth: 1,
			Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1, Source: t.Source,
		}})
		total += m.Count
	}
	if total == 0 || total > hw.MaxPlaced {
		return nil, fmt.Errorf("the machine of %s has %d devices, want 1 to %d", t.Source, total, hw.MaxPlaced)
	}
	// A route has two links, and their latencies add up.
	m, err := hw.Star(fmt.Sprintf("%s-x%d", t.Models[0].Name, t.Models[0].Count), "as "+t.Source+" has it", spokes, units.BytesPerSecond(t.Bandwidth), max(units.Seconds(t.Latency)/2, delay))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Source, err)
	}
	return m, nil
}

// For returns the cost model of the table on m. A device takes the times of its
// own model, or, where the table does not know it, those of the table's only
// model of accelerators or of CPUs. The error names the first device without, or the
// first op that no device can run (ErrNowhere).
func (t *Table) For(m *hw.Machine) (*Cost, error) {
	c := &Cost{}
	for d := range m.Devices {
		v := &m.Devices[d]
		row := t.model(v.Model)
		if row == nil {
			row = t.only(v.Kind == hw.CPU)
		}
		if row == nil {
			return nil, fmt.Errorf("%s is a %s, of which %s has no times", v.Name, v.Model, t.Source)
		}
		c.rows = append(c.rows, row)
	}
	if op := c.nowhere(); op >= 0 {
		return nil, fmt.Errorf("op %d: %w of %s", op, ErrNowhere, m.Name)
	}
	return c, nil
}

// ErrNowhere says that an op can run on no device.
var ErrNowhere = errors.New("can run on no device")

// nowhere returns the first op that has no time on any device, or -1.
func (c *Cost) nowhere() int {
	if len(c.rows) == 0 {
		return -1
	}
	for op := range c.rows[0].Seconds {
		if !slices.ContainsFunc(c.rows, func(m *Model) bool { return !math.IsInf(m.Seconds[op], 1) }) {
			return op
		}
	}
	return -1
}

// only returns the table's one model of that kind, or nil.
func (t *Table) only(cpu bool) (found *Model) {
	for k := range t.Models {
		if t.Models[k].CPU == cpu {
			if found != nil {
				return nil
			}
			found = &t.Models[k]
		}
	}
	return found
}

// Columns returns the seconds of each op on each device of m, [D][N], as the
// table has them: 0 for ops of no time, +Inf for those that cannot run.
func (t *Table) Columns(m *hw.Machine) ([][]float64, error) {
	c, err := t.For(m)
	if err != nil {
		return nil, err
	}
	var columns [][]float64
	for _, row := range c.rows {
		columns = append(columns, row.Seconds)
	}
	return columns, nil
}
