package report

import (
	"fmt"
	"io"

	"placer/maxload"
	"placer/units"
)

// MaxLoad is the throughput objective of one placement.
type MaxLoad struct {
	Seconds    float64 `json:"seconds"` // of the most loaded device
	LowerBound float64 `json:"lower_bound_s"`
	Overflow   int64   `json:"overflow_bytes"`
	Devices    []Load  `json:"devices"`
}

// Load is what a device does for one sample of a pipeline.
type Load struct {
	Name          string  `json:"name"`
	Compute       float64 `json:"compute_s"`
	Communication float64 `json:"communication_s"`
	Bytes         int64   `json:"bytes"`
	Memory        int64   `json:"memory_bytes"`
}

// Loads judges the placement device, [N], of s.
func Loads(s maxload.Source, device []uint8) (*MaxLoad, error) {
	x, err := maxload.New(s)
	if err != nil {
		return nil, err
	}
	j := x.Judge(x.Gather(device))
	m := &MaxLoad{Seconds: j.Seconds, LowerBound: x.Bound(j.Seconds), Overflow: j.Overflow}
	for d, l := range j.Loads {
		m.Devices = append(m.Devices, Load{s.Machine.Devices[d].Name, l.Compute, l.Communication, l.Bytes, int64(s.Machine.Devices[d].Memory)})
	}
	return m, nil
}

// WriteText writes m as a table.
func (m *MaxLoad) WriteText(w io.Writer) error {
	t := newTable("device", "load", "compute", "communication", "memory", "of memory")
	t.right(1, 2, 3, 4, 5)
	for _, d := range m.Devices {
		t.row(d.Name, units.Seconds(d.Compute+d.Communication).String(), units.Seconds(d.Compute).String(), units.Seconds(d.Communication).String(), units.Bytes(d.Bytes).String(), percent(float64(d.Bytes), float64(d.Memory)))
	}
	if err := t.write(w); err != nil {
		return err
	}
	fits := ""
	if m.Overflow > 0 {
		fits = fmt.Sprintf("; %s more than the devices have", units.Bytes(m.Overflow))
	}
	_, err := fmt.Fprintf(w, "max load %s; proven lower bound %s%s\n", units.Seconds(m.Seconds), units.Seconds(m.LowerBound), fits)
	return err
}
