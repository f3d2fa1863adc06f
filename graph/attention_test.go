package graph_test

import (
	"testing"

	"placer/graph"
)

// TestSeen counts the keys of every query.
func TestSeen(t *testing.T) {
	for queries := int64(1); queries < 9; queries++ {
		for past := int64(0); past < 9; past++ {
			for window := int64(0); window < 20; window++ {
				total := int64(0)
				for q := range queries {
					n := past + q + 1
					if window > 0 {
						n = min(n, window)
					}
					total += n
				}
				if got, want := graph.Seen(queries, past, window), (total+queries-1)/queries; got != want {
					t.Errorf("%d queries behind %d in a window of %d see %d, want %d", queries, past, window, got, want)
				}
			}
		}
	}
}

// TestAttending: the operations of Dao et al. (arXiv:2307.08691, section 4.1), and 2.5 times
// as many for the gradient.
func TestAttending(t *testing.T) {
	a := graph.Attending{Heads: 3 * 5, Queries: 7, Seen: 11, KeyDim: 16, ValueDim: 16}
	const forward = 4 * 3 * 5 * 7 * 11 * 16
	if f, b := float64(a.Forward().FLOPs()), float64(a.Backward().FLOPs()); f != forward || b != 2.5*forward {
		t.Errorf("%g forward and %g backward, want %d and 2.5 times that", f, b, forward)
	}
}
