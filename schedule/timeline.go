package schedule

import (
	"slices"
	"sort"
)

// Timeline is what one device or link is busy with, in seconds: idle gaps, and busy
// from the last of them until Free. A schedule that is made in one order and run in
// another leaves gaps, and what is ready sooner fills them. The zero value is idle.
type Timeline struct {
	// MostGaps bounds how many gaps are remembered; the oldest is forgotten, and so
	// counts as busy. 0 remembers all.
	MostGaps int

	free float64
	gaps []gap // by time, none empty
}

type gap struct{ start, end float64 }

// Reset makes the timeline idle.
func (t *Timeline) Reset() { t.free, t.gaps = 0, t.gaps[:0] }

// Free returns from when on the timeline is idle for good.
func (t *Timeline) Free() float64 { return t.free }

// Earliest returns the first instant from ready on at which the timeline is idle
// for length seconds.
func (t *Timeline) Earliest(ready, length float64) float64 {
	if ready < t.free {
		first := sort.Search(len(t.gaps), func(i int) bool { return t.gaps[i].end >= ready })
		for _, g := range t.gaps[first:] {
			if at := max(ready, g.start); at+length <= g.end {
				return at
			}
		}
	}
	return max(ready, t.free)
}

// Take makes the timeline busy for length seconds from start, which Earliest
// returned.
func (t *Timeline) Take(start, length float64) {
	end := start + length
	if start >= t.free {
		if start > t.free {
			t.insert(len(t.gaps), gap{t.free, start})
		}
		t.free = end
		return
	}
	i := sort.Search(len(t.gaps), func(i int) bool { return t.gaps[i].end > start })
	if i == len(t.gaps) || t.gaps[i].start > start {
		return // nothing of no length, at the edge of a gap
	}
	switch g := &t.gaps[i]; {
	case g.end > end && start > g.start:
		before := gap{g.start, start}
		g.start = end
		t.insert(i, before)
	case g.end > end:
		g.start = end
	case start > g.start:
		g.end = start
	default:
		t.gaps = slices.Delete(t.gaps, i, i+1)
	}
}

func (t *Timeline) insert(i int, g gap) {
	t.gaps = slices.Insert(t.gaps, i, g)
	if t.MostGaps > 0 && len(t.gaps) > t.MostGaps {
		t.gaps = slices.Delete(t.gaps, 0, 1)
	}
}
