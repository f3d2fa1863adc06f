package strategies

import "sync"

// memo keeps what was made for each key. It serves any number of goroutines: the first that asks
// for a key makes its value, and others wait for that.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	cells map[K]*cell[V]
}

type cell[V any] struct {
	once  sync.Once
	value V
	err   error
}

// of returns the value of k, which make makes.
func (m *memo[K, V]) of(k K, make func() (V, error)) (V, error) {
	m.mu.Lock()
	c := m.cells[k]
	if c == nil {
		if m.cells == nil {
			m.cells = map[K]*cell[V]{}
		}
		c = &cell[V]{}
		m.cells[k] = c
	}
	m.mu.Unlock()
	c.once.Do(func() { c.value, c.err = make() })
	return c.value, c.err
}
