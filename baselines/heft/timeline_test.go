package heft

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTimeline compares with a calendar of whole units of time.
func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l timeline
		var busy [400]bool
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			ready, length := rapid.IntRange(0, 60).Draw(t, "ready"), rapid.IntRange(1, 8).Draw(t, "length")
			want := ready
			for k := want; k < want+length; k++ {
				if busy[k] {
					want = k + 1
				}
			}
			if got := l.earliest(float64(ready), float64(length)); got != float64(want) {
				t.Fatalf("earliest gap of %d from %d is at %v, want %d; timeline %v", length, ready, got, want, l)
			}
			l.take(float64(want), float64(length))
			for k := want; k < want+length; k++ {
				busy[k] = true
			}
		}
		for k := 1; k < len(l); k++ {
			if l[k].start <= l[k-1].end {
				t.Fatalf("spans %v overlap or touch", l)
			}
		}
	})
}
