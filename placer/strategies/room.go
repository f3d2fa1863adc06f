package strategies

import "sync"

// Room keeps several comparisons within one stretch of time: nothing is begun that
// would end behind it if it took growth times as long as the longest so far. It serves any number of
// goroutines.
type Room struct {
	Clock   func() float64 // seconds
	End     float64        // on Clock
	mu      sync.Mutex
	longest float64
}

// growth is how much longer the next may take than what came before: it may have twice the
// micro-batches, and larger graphs miss the cache.
const growth = 2.5

// Expect says that something will take so long, in seconds, before anything has.
func (r *Room) Expect(seconds float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.longest = max(r.longest, seconds)
}

// left reports whether there is room for one more. A nil Room has no end.
func (r *Room) left() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Clock()+growth*r.longest < r.End
}

// begin returns the beginning of something.
func (r *Room) begin() float64 {
	if r == nil {
		return 0
	}
	return r.Clock()
}

// ended notes how long something took that began then.
func (r *Room) ended(begin float64) {
	if r != nil {
		r.Expect(r.Clock() - begin)
	}
}
