package heft

import "slices"

// timeline is what a device or link is busy with: disjoint spans in order, those
// that touch merged.
type timeline []span

type span struct{ start, end float64 }

// earliest returns the first instant from ready on at which the timeline is idle
// for length.
func (l timeline) earliest(ready, length float64) float64 {
	k, _ := slices.BinarySearchFunc(l, ready, func(s span, at float64) int {
		if s.end > at {
			return 1
		}
		return -1
	})
	for ; k < len(l) && ready+length > l[k].start; k++ {
		ready = max(ready, l[k].end)
	}
	return ready
}

// take makes the timeline busy from start for length; that stretch must be idle.
func (l *timeline) take(start, length float64) {
	s := span{start, start + length}
	k, _ := slices.BinarySearchFunc(*l, start, func(s span, at float64) int {
		if s.end > at {
			return 1
		}
		return -1
	})
	before := k > 0 && (*l)[k-1].end >= s.start
	after := k < len(*l) && (*l)[k].start <= s.end
	switch {
	case before && after:
		(*l)[k-1].end = (*l)[k].end
		*l = slices.Delete(*l, k, k+1)
	case before:
		(*l)[k-1].end = s.end
	case after:
		(*l)[k].start = s.start
	default:
		*l = slices.Insert(*l, k, s)
	}
}

// end returns when the last span ends.
func (l timeline) end() float64 {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].end
}
