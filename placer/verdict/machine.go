package verdict

import (
	"fmt"
	"slices"

	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// Machine is a machine that a graph is judged on.
type Machine struct {
	*hw.Machine // its devices in the order in which a sweep takes them
	// Price is that of an hour of each device, [D]; nil where it is not known.
	Price []float64
	Error ModelError
}

// InOrder returns m with its devices in the order in which a sweep takes them: GPUs
// before CPUs, and among those the device first on which the whole step of s is best;
// what fits comes before what does not. Equal devices keep their order.
func InOrder(s problem.Source, m *hw.Machine) (*hw.Machine, error) {
	score := make([]plan.Score, m.NumDevices())
	for d := range score {
		k := slices.IndexFunc(m.Devices[:d], func(e hw.Device) bool { return e.SameFigures(&m.Devices[d]) })
		if k >= 0 {
			score[d] = score[k]
			continue
		}
		one, priority, err := problem.Simulator(s, m.Keep([]int{d}), problem.Options{})
		if err != nil {
			return nil, err
		}
		score[d] = one.Evaluate(plan.Decision{Device: make([]uint8, s.NumOps()), Priority: priority})
	}
	order := make([]int, len(score))
	for d := range order {
		order[d] = d
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if x, y := m.Devices[a].Kind, m.Devices[b].Kind; x != y {
			if x == hw.GPU {
				return -1
			}
			return 1
		}
		return score[a].Compare(score[b])
	})
	if slices.IsSorted(order) {
		return m, nil
	}
	return m.Keep(order), nil
}

// Taken returns the machine of m's first n devices.
func (m *Machine) Taken(n int) *hw.Machine {
	keep := make([]int, n)
	for d := range keep {
		keep[d] = d
	}
	return m.Keep(keep)
}

// Hour returns the price of an hour of the first n devices; ok is false where it is
// not known.
func (m *Machine) Hour(n int) (price float64, ok bool) {
	for _, p := range m.Price[:min(n, len(m.Price))] {
		price += p
	}
	return price, len(m.Price) >= n && n > 0
}

// Prices returns the price of each device of m, [D], from prices by name of machine or
// by model of device; "" is that of everything else. A CPU beside GPUs comes with them and
// costs nothing, unless its model has a price. It is nil without prices, and an error where
// another device has none.
func Prices(m *hw.Machine, by map[string]float64) ([]float64, error) {
	if len(by) == 0 {
		return nil, nil
	}
	price := make([]float64, m.NumDevices())
	gpus := slices.ContainsFunc(m.Devices, func(d hw.Device) bool { return d.Kind == hw.GPU })
	for d := range price {
		found := false
		if m.Devices[d].Kind == hw.CPU && gpus {
			price[d] = by[m.Devices[d].Model]
			continue
		}
		for _, name := range []string{m.Devices[d].Model, m.Name, ""} {
			if price[d], found = by[name]; found {
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("machine %s: no price of device %s (%s)", m.Name, m.Devices[d].Name, m.Devices[d].Model)
		}
	}
	return price, nil
}

// leastMissing returns how many bytes any plan lacks on m at least: resident bytes
// beyond all memory together; on one device, what one op needs while it runs too.
func leastMissing(s problem.Source, m *hw.Machine, onOne units.Bytes) units.Bytes {
	var have units.Bytes
	for d := range m.Devices {
		have += m.Devices[d].Memory
	}
	need := s.Resident()
	if m.NumDevices() == 1 {
		need = max(need, onOne)
	}
	return max(0, need-have)
}
