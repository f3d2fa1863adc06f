package nn

import "slices"

// Compiled is what a model keeps for one shape: a Graph that is compiled, beside what its
// operations read.
type Compiled interface {
	Trains() bool
	Close() error
}

// Cache keeps the compiled graphs of a model that were used last, and closes those that it
// drops. It is not safe for concurrent use.
type Cache[C Compiled] struct {
	Most int // graphs that are kept, at least 1

	kept []C // the most recently used last
}

// Get returns the graph that fits, which trains if train says so, or what compile makes: one
// that fits and can only go forward gives way to one that trains.
func (k *Cache[C]) Get(fits func(C) bool, train bool, compile func() (C, error)) (C, error) {
	if i := slices.IndexFunc(k.kept, fits); i >= 0 {
		c := k.kept[i]
		k.kept = slices.Delete(k.kept, i, i+1)
		if c.Trains() || !train {
			k.kept = append(k.kept, c)
			return c, nil
		}
		_ = c.Close() // a device that cannot free has said so before
	}
	c, err := compile()
	if err != nil {
		return c, err
	}
	if k.kept = append(k.kept, c); len(k.kept) > k.Most {
		_ = k.kept[0].Close()
		k.kept = slices.Delete(k.kept, 0, 1)
	}
	return c, nil
}

// Forget drops those that which names.
func (k *Cache[C]) Forget(which func(C) bool) {
	k.kept = slices.DeleteFunc(k.kept, func(c C) bool {
		drop := which(c)
		if drop {
			_ = c.Close()
		}
		return drop
	})
}
