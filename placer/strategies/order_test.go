package strategies

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// unequal is a star of devices of so many times the speed of the slowest, on one host.
func unequal(t testing.TB, speeds ...float64) *hw.Machine {
	t.Helper()
	m := star(t, len(speeds), 1e10, 1e-6)
	for k, s := range speeds {
		d := &m.Devices[k]
		d.Peak = map[string]units.FLOPsPerSecond{"f32": units.FLOPsPerSecond(1e12 * s)}
		d.MemoryBandwidth = units.BytesPerSecond(1e11 * s)
	}
	return m
}

func comparison(t testing.TB, m *hw.Machine, layers int) *Comparison {
	t.Helper()
	x, err := NewComparison(source(), family(fmt.Sprintf("llama:layers=%d,hidden=128,heads=4,kv_heads=4,ffn=256,seq=64,vocab=4000", layers)), m, Config{Batch: 16, Clock: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestBestOrder: of unequal devices a pipeline is as short as under the best of all orders of the devices,
// each simulated as a machine of its own, and as short whatever the machine's own order.
func TestBestOrder(t *testing.T) {
	for _, speeds := range [][]float64{{4, 1}, {4, 4, 1, 1}, {3, 1, 1}, {6, 3, 1}, {2, 2, 2}} {
		for _, text := range []string{"1f1b=%d mb=8", "gpipe=%d mb=4"} {
			s, err := strategy.Parse(fmt.Sprintf(text, len(speeds)))
			if err != nil {
				t.Fatal(err)
			}
			m := unequal(t, speeds...)
			identity := make([]int, len(speeds))
			for k := range identity {
				identity[k] = k
			}
			least, most := math.Inf(1), 0.0
			var machines []*hw.Machine
			permute(identity, 0, func(order []int) {
				of := m.Keep(order)
				machines = append(machines, of)
				x := comparison(t, of, 6)
				r, err := x.simulate(x.judge, s)
				if err != nil {
					t.Fatal(err)
				}
				least, most = min(least, r.Seconds), max(most, r.Seconds)
			})
			if speeds[0] > speeds[len(speeds)-1] && most < 1.01*least {
				t.Errorf("%v, %v: all orders take %.6g s", speeds, s, least)
			}
			for k, of := range machines {
				if k%5 > 0 { // each with all of its orders
					continue
				}
				x := comparison(t, of, 6)
				r, err := x.Simulate(s)
				if err != nil {
					t.Fatal(err)
				}
				if r.Seconds > least*(1+1e-9) {
					t.Errorf("%v, %v: %.6g s, the best order takes %.6g and the worst %.6g", speeds, s, r.Seconds, least, most)
				}
				if (r.Order == nil) != (r.On == nil) || r.Order == nil {
					continue
				}
				// What it says of its order is what that order comes to.
				own := comparison(t, of.Keep(r.Order), 6)
				want, err := own.simulate(own.judge, s)
				if err != nil {
					t.Fatal(err)
				}
				for k, d := range r.Order {
					if r.Peak[d] != want.Peak[k] || r.On[k] != of.Devices[d].Name {
						t.Errorf("%v, %v: device %d, of rank %d, is %s and holds %v, want %v", speeds, s, d, k, r.On[k], r.Peak[d], want.Peak[k])
					}
				}
				if want.Seconds != r.Seconds || want.Traffic != r.Traffic {
					t.Errorf("%v, %v: %.9g s, %.9g as a machine of that order", speeds, s, r.Seconds, want.Seconds)
				}
			}
		}
	}
}

// TestOrdersAreFew: machines of many kinds of devices have at most mostOrders orders, of which a
// strategy is simulated in mostSimulated; where all devices are alike, and for replicas, in one.
func TestOrdersAreFew(t *testing.T) {
	s, err := strategy.Parse("1f1b=8 mb=8")
	if err != nil {
		t.Fatal(err)
	}
	replicas := s
	replicas.Mesh = strategy.Mesh{Data: 8, Pipeline: 1, Tensor: 1}
	replicas.MicroBatches = 1
	for _, c := range []struct {
		speeds         []float64
		orders, others int
	}{
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1}, 1, 0},
		{[]float64{2, 2, 2, 2, 1, 1, 1, 1}, 2, 1},
		{[]float64{2, 1, 2, 1, 2, 1, 2, 1}, 3, 2}, // and as they are
		{[]float64{3, 3, 2, 2, 1, 1, 1, 1}, 6, 5},
		{[]float64{4, 4, 3, 3, 2, 2, 1, 1}, 24, 5},
		{[]float64{8, 7, 6, 5, 4, 3, 2, 1}, 16, 5},
	} {
		x := comparison(t, unequal(t, c.speeds...), 8)
		ks, err := x.promising(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.orders) != c.orders || len(ks) != c.others {
			t.Errorf("%v: %d orders, %d besides the first simulated, want %d and %d", c.speeds, len(x.orders), len(ks), c.orders, c.others)
		}
		for _, order := range x.orders {
			sorted := slices.Sorted(slices.Values(order))
			if !slices.Equal(sorted, x.orders[0]) {
				t.Errorf("%v: %v is no order of all devices", c.speeds, order)
			}
		}
		if ks, err := x.promising(replicas); err != nil || len(ks) > 0 {
			t.Errorf("%v: replicas are simulated in %v too: %v", c.speeds, ks, err)
		}
	}
}

// TestOrdersKeepHosts: devices of a host that are alike stay side by side, in every order but the
// machine's own.
func TestOrdersKeepHosts(t *testing.T) {
	m := &hw.Machine{Name: "two hosts"}
	var cables []hw.Cable
	for k := range 8 {
		host := k % 2
		name := fmt.Sprintf("gpu:%d", k)
		speed := 1 + float64(k/4) // two slow and two fast devices on each host
		m.Devices = append(m.Devices, hw.Device{Name: name, Kind: hw.GPU, Memory: 1 << 40, MemoryBandwidth: units.BytesPerSecond(1e11 * speed), Peak: map[string]units.FLOPsPerSecond{"f32": units.FLOPsPerSecond(1e12 * speed)}, SMs: 1})
		cables = append(cables, hw.Cable{A: name, B: fmt.Sprintf("host%d", host), Bandwidth: 1e11, Latency: 1e-6, Medium: hw.Medium{Medium: "nvlink"}})
	}
	cables = append(cables, hw.Cable{A: "host0", B: "host1", Bandwidth: 1e9, Latency: 1e-5, Medium: hw.Medium{Medium: hw.Between}})
	if err := m.Connect(cables); err != nil {
		t.Fatal(err)
	}
	x := comparison(t, m, 6)
	if len(x.orders) < 3 || len(x.orders) > mostOrders {
		t.Errorf("%d orders", len(x.orders))
	}
	for _, order := range x.orders[1:] {
		for k := 0; k < len(order); k += 2 {
			if a, b := order[k], order[k+1]; a%2 != b%2 || a/4 != b/4 {
				t.Errorf("%v: devices %d and %d are no group", order, a, b)
			}
		}
	}
}
