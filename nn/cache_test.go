package nn

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// shaped is a compiled graph of a test.
type shaped struct {
	shape  int
	trains bool
	closed int
}

func (s *shaped) Trains() bool { return s.trains }
func (s *shaped) Close() error { s.closed++; return nil }

// TestCache: a shape is compiled once, again where a training graph is needed, and the least
// recently used goes first; all that are dropped are closed, once, and no other.
func TestCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "most")
		cache := Cache[*shaped]{Most: most}
		var made, want []*shaped // want is what is kept, by the rules, the most recently used last
		for range rapid.IntRange(1, 40).Draw(t, "uses") {
			shape, train := rapid.IntRange(0, 5).Draw(t, "shape"), rapid.Bool().Draw(t, "train")
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				cache.Forget(func(s *shaped) bool { return s.shape == shape })
				want = slices.DeleteFunc(want, func(s *shaped) bool { return s.shape == shape })
				continue
			}
			got, err := cache.Get(func(s *shaped) bool { return s.shape == shape }, train, func() (*shaped, error) {
				made = append(made, &shaped{shape: shape, trains: train})
				return made[len(made)-1], nil
			})
			if err != nil || got.shape != shape || train && !got.trains {
				t.Fatalf("shape %d, training %v: %+v, %v", shape, train, got, err)
			}
			before := slices.IndexFunc(want, func(s *shaped) bool { return s.shape == shape })
			if before >= 0 && (want[before] == got) != (want[before].trains || !train) {
				t.Fatalf("shape %d, training %v: compiled again: %v", shape, train, want[before] != got)
			}
			if before >= 0 {
				want = slices.Delete(want, before, before+1)
			}
			want = append(want, got)
			want = want[max(0, len(want)-most):]
		}
		for _, s := range made {
			if closed := 1; slices.Contains(want, s) && s.closed != 0 || !slices.Contains(want, s) && s.closed != closed {
				t.Fatalf("%+v, kept: %v", s, slices.Contains(want, s))
			}
		}
	})
	cache := Cache[*shaped]{Most: 1}
	if _, err := cache.Get(func(*shaped) bool { return true }, false, func() (*shaped, error) { return nil, fmt.Errorf("no memory") }); err == nil || len(cache.kept) != 0 {
		t.Errorf("%v, %d kept", err, len(cache.kept))
	}
}
