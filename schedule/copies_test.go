package schedule_test

import (
	"math"
	"testing"

	"placer/hw"
	"placer/schedule"
)

// Where copies occupy the sender one copy serves all readers, copies of a device
// follow one another, and the delivery and the receipt stand behind.
func TestArrivalsOfCopies(t *testing.T) {
	ends := hw.EndCosts{Occupies: hw.Sender, Delivery: 1, Receive: 2, ReceiveBandwidth: 100}
	m := &hw.Machine{Name: "cores", Devices: make([]hw.Device, 3), Routes: make([][]int32, 9)}
	for s := range 3 {
		for d := range 3 {
			if s != d {
				m.Routes[3*s+d] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Bandwidth: 10, Latency: 4, EndCosts: ends})
			}
		}
	}
	a := schedule.NewArrivals(m, 2)
	near := func(got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	near(a.When(0, 50, 0, 7, 1, true), 7+4+5+1+2+0.5)
	near(a.When(0, 50, 0, 7, 2, true), 7+4+5+1+2+0.5) // the same copy
	near(a.When(1, 10, 0, 7, 1, false), 16+4+1+1+2+0.1)
	near(a.When(1, 10, 0, 30, 1, false), 30+4+1+1+2+0.1)
	a.Reset()
	near(a.When(1, 10, 0, 7, 1, false), 7+4+1+1+2+0.1)
	if schedule.Receipt(&hw.Machine{Devices: make([]hw.Device, 2), Routes: make([][]int32, 4)}, 0, 1, 9) != 0 {
		t.Error("a receipt where nothing occupies the sender")
	}
}
