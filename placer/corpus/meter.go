package corpus

import "sync"

// meter divides the program's processor time equally between the problems that are being
// labelled.
type meter struct {
	cpu func() float64 // nil: there is none, and it is always 0

	mu      sync.Mutex
	running int
	last    float64
	each    float64 // of one that has run since the beginning
}

// change adds n to the number of problems.
func (m *meter) change(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charge()
	m.running += n
}

// seconds returns what a problem that has run since the beginning has used.
func (m *meter) seconds() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charge()
	return m.each
}

// charge charges what has been used since the last call; mu is held.
func (m *meter) charge() {
	if m.cpu == nil {
		return
	}
	now := m.cpu()
	if m.running > 0 {
		m.each += (now - m.last) / float64(m.running)
	}
	m.last = now
}
