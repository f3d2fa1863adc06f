package transfer

// timeline is what a device is busy with: until free, but for the gaps. A schedule
// that is made in one order and run in another has them, and what is ready sooner
// fills them.
type timeline struct {
	free float64
	gaps [maxGaps]gap // oldest first
	n    int
}

type gap struct{ start, end float64 }

// maxGaps bounds the gaps of a timeline; the oldest is forgotten.
const maxGaps = 24

func (t *timeline) reset() { t.free, t.n = 0, 0 }

// earliest returns when what takes length seconds and is ready at a time can
// start.
func (t *timeline) earliest(ready, length float64) float64 {
	if ready < t.free {
		for i := range t.gaps[:t.n] {
			if at := max(ready, t.gaps[i].start); at+length <= t.gaps[i].end {
				return at
			}
		}
	}
	return max(ready, t.free)
}

// book takes length seconds from start, which earliest returned.
func (t *timeline) book(start, length float64) {
	if start >= t.free {
		if start > t.free {
			t.insert(t.n, gap{t.free, start})
		}
		t.free = start + length
		return
	}
	for i := range t.gaps[:t.n] {
		g := t.gaps[i]
		if start < g.start || start+length > g.end {
			continue
		}
		t.n--
		copy(t.gaps[i:t.n], t.gaps[i+1:])
		if g.end > start+length {
			t.insert(i, gap{start + length, g.end})
		}
		if start > g.start {
			t.insert(i, gap{g.start, start})
		}
		return
	}
}

// insert puts g before gap i; if there is no room, the oldest goes.
func (t *timeline) insert(i int, g gap) {
	if t.n == maxGaps {
		if i == 0 {
			return
		}
		copy(t.gaps[:], t.gaps[1:i])
		t.gaps[i-1] = g
		return
	}
	copy(t.gaps[i+1:t.n+1], t.gaps[i:t.n])
	t.gaps[i] = g
	t.n++
}
