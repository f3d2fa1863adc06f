package report

import (
	"context"

	"placer/sim/throughput"
	"placer/units"
)

// MaxLoad is the throughput objective of one placement.
type MaxLoad struct {
	Seconds    float64 `json:"seconds"` // of the most loaded device
	LowerBound float64 `json:"lower_bound_s"`
	Overflow   int64   `json:"overflow_bytes"`
	Devices    []load  `json:"devices"`
}

// load is what a device does for one sample of a pipeline.
type load struct {
	Name          string  `json:"name"`
	Compute       float64 `json:"compute_s"`
	Communication float64 `json:"communication_s"`
	Bytes         int64   `json:"bytes"`
	Memory        int64   `json:"memory_bytes"`
}

// Loads judges the placement device, [N], of s.
func Loads(ctx context.Context, s throughput.Source, device []uint8) (*MaxLoad, error) {
	x, err := throughput.New(ctx, s)
	if err != nil {
		return nil, err
	}
	j := x.Evaluate(x.Gather(device))
	m := &MaxLoad{Seconds: j.Seconds, LowerBound: x.Bound(ctx, j.Seconds, throughput.BoundEffort), Overflow: j.Overflow}
	for d, l := range j.Loads {
		m.Devices = append(m.Devices, load{s.Machine.Devices[d].Name, l.Compute, l.Communication, l.Bytes, int64(s.Machine.Devices[d].Memory)})
	}
	return m, nil
}

// table has a row for each device.
func (m *MaxLoad) table() *table {
	t := newTable("device", ">load", ">compute", ">communication", ">memory", ">of memory")
	for _, d := range m.Devices {
		t.row(d.Name, seconds(d.Compute+d.Communication), seconds(d.Compute), seconds(d.Communication), units.Bytes(d.Bytes), percent(float64(d.Bytes), float64(d.Memory)))
	}
	return t
}
