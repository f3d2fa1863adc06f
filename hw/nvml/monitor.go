package nvml

import "fmt"

// Monitor reads the state of GPUs while something runs on them.
type Monitor struct{ n library }

// Watch opens the library for reading states. The error is that of Detect.
func Watch() (*Monitor, error) { return watch(host()) }

func watch(n library) (*Monitor, error) {
	if err := n.start(); err != nil {
		return nil, err
	}
	return &Monitor{n}, nil
}

// Read returns the state of the GPU of that UUID. What the library does not tell but the
// clock is zero.
func (m *Monitor) Read(uuid string) (s State, err error) {
	d, err := m.n.deviceOf(uuid)
	if err != nil {
		return s, fmt.Errorf("GPU %s: %w", uuid, err)
	}
	if s.SMClock, err = d.clock(clockSM); err != nil {
		return State{}, fmt.Errorf("GPU %s: clock: %w", uuid, err)
	}
	s.MemoryClock, _ = d.clock(clockMemory)
	power, _ := d.power()
	s.Power = float64(power) / 1000
	s.Utilisation, _ = d.utilisation()
	s.Throttle, _ = d.reasons()
	return s, nil
}

// Others returns how many processes compute on the GPU of that UUID, this one
// included.
func (m *Monitor) Others(uuid string) (int, error) {
	d, err := m.n.deviceOf(uuid)
	if err != nil {
		return 0, fmt.Errorf("GPU %s: %w", uuid, err)
	}
	n, err := d.processes()
	if err != nil {
		return 0, fmt.Errorf("GPU %s: processes: %w", uuid, err)
	}
	return n, nil
}

// Close ends the use of the library.
func (m *Monitor) Close() error { return m.n.stop() }
