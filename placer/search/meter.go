package search

// meter divides the program's processor time between the methods that run.
type meter struct {
	cpu     func() float64
	last    float64
	running map[string]bool
	used    map[string]float64
}

func newMeter(cpu func() float64) *meter {
	return &meter{cpu: cpu, last: cpu(), running: map[string]bool{}, used: map[string]float64{}}
}

// settle charges what has been used since the last call.
func (m *meter) settle() {
	now := m.cpu()
	for name := range m.running { // equal shares: the order does not matter
		m.used[name] += (now - m.last) / float64(len(m.running))
	}
	m.last = now
}

func (m *meter) start(method string) { m.settle(); m.running[method] = true }
func (m *meter) stop(method string)  { m.settle(); delete(m.running, method) }

// seconds returns what method has used so far.
func (m *meter) seconds(method string) float64 { m.settle(); return m.used[method] }
