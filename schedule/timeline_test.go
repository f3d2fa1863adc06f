package schedule

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTimeline compares with a calendar of whole units of time.
func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Timeline
		var busy [400]bool
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			ready, length := rapid.IntRange(0, 60).Draw(t, "ready"), rapid.IntRange(1, 8).Draw(t, "length")
			want := ready
			for k := want; k < want+length; k++ {
				if busy[k] {
					want = k + 1
				}
			}
			if got := l.Earliest(float64(ready), float64(length)); got != float64(want) {
				t.Fatalf("earliest gap of %d from %d is at %v, want %d; gaps %v", length, ready, got, want, l.gaps)
			}
			l.Take(float64(want), float64(length))
			for k := want; k < want+length; k++ {
				busy[k] = true
			}
		}
		last := 0.0
		for _, g := range l.gaps {
			if g.start < last || g.end <= g.start || g.end >= l.free {
				t.Fatalf("gaps %v until %v are empty, overlap or touch", l.gaps, l.free)
			}
			last = g.end
		}
	})
}

// The oldest of too many gaps counts as busy, whether it was there or has just come
// to be.
func TestMostGaps(t *testing.T) {
	l := Timeline{MostGaps: 2}
	for _, start := range []float64{1, 3, 5} {
		l.Take(start, 1)
	}
	if got := l.Earliest(0, 1); got != 2 {
		t.Errorf("the oldest gap is still there: %v", got)
	}
	l.Reset()
	l.Take(10, 1)
	l.Take(12, 1)
	l.Take(4, 1) // 0 to 4 is one too many
	if got := l.Earliest(0, 1); got != 5 {
		t.Errorf("starts at %v, want 5", got)
	}
	if l.Free() != 13 {
		t.Errorf("free from %v on", l.Free())
	}
}

// What takes no time splits a gap and leaves its edges alone.
func TestNoLength(t *testing.T) {
	var l Timeline
	l.Take(4, 1)
	l.Take(2, 0)
	if got := l.Earliest(1, 2); got != 2 {
		t.Errorf("starts at %v, want 2", got)
	}
	for _, at := range []float64{0, 4} {
		if got := l.Earliest(at, 0); got != at {
			t.Errorf("nothing starts at %v, want %v", got, at)
		}
		l.Take(at, 0)
	}
	if got := l.Earliest(0, 2); got != 0 {
		t.Errorf("starts at %v, want 0", got)
	}
}
