package search

// cpuTimes divides the program's processor time between the methods that run.
type cpuTimes struct {
	cpu     func() float64
	last    float64
	running map[string]bool
	used    map[string]float64
}

func newCPUTimes(cpu func() float64) *cpuTimes {
	return &cpuTimes{cpu: cpu, last: cpu(), running: map[string]bool{}, used: map[string]float64{}}
}

// charge charges what has been used since the last call.
func (m *cpuTimes) charge() {
	now := m.cpu()
	for name := range m.running { // equal shares: the order does not matter
		m.used[name] += (now - m.last) / float64(len(m.running))
	}
	m.last = now
}

func (m *cpuTimes) start(method string) { m.charge(); m.running[method] = true }
func (m *cpuTimes) stop(method string)  { m.charge(); delete(m.running, method) }

// seconds returns what method has used so far.
func (m *cpuTimes) seconds(method string) float64 { m.charge(); return m.used[method] }
