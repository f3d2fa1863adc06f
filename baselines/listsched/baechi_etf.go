package listsched

import (
	"context"

	"placer/graph"
	"placer/units"
)

// memoryETF is a schedule of a model under way.
type memoryETF struct {
	*state
	m          *model
	favourites []int32   // [V] child, or none; nil for m-ETF
	awaited    []int32   // [D] favourite of the last node that ran there, or none
	until      []float64 // [D] how long it is awaited
}

// etf returns the device of each group, [K], by earliest start; with favourites it
// is m-SCT. It returns false when ctx has ended.
func (m *model) etf(ctx context.Context, room []units.Bytes, favourites []int32) ([]int, bool) {
	n := m.g.NumOps()
	s := &memoryETF{state: newState(m.nodes, room), m: m, favourites: favourites, awaited: make([]int32, m.d), until: make([]float64, m.d)}
	s.elsewhere = func(int) int { return roomiest(s.held, s.room) }
	for d := range s.awaited {
		s.awaited[d] = none
	}
	waits := append([]int(nil), m.before...)
	var ready []graph.OpID
	for v := range n {
		if waits[v] == 0 && !m.source[v] {
			ready = append(ready, graph.OpID(v))
		}
	}
	for step := 0; len(ready) > 0; step++ {
		if step%64 == 0 && ctx.Err() != nil {
			return nil, false
		}
		at, d := s.next(ready)
		v := ready[at]
		ready = append(ready[:at], ready[at+1:]...)
		s.place(v, d)
		for _, w := range m.after[v] {
			if waits[w]--; waits[w] == 0 {
				ready = append(ready, w)
			}
		}
	}
	for v := range n { // sources that nothing reads
		if k := m.group[v]; s.of[k] == none {
			d := s.alone(k)
			s.fix(k, d)
			s.free[d] += s.work[d][k]
		}
	}
	return s.of, true
}

// alone returns the device of group k, which nothing read: of those where it fits, if any, the one
// on which it ends first, or the roomiest where it has no work.
func (s *state) alone(k int32) int {
	best := none
	for d := range s.d {
		if s.work[d][k] <= momentary {
			return roomiest(s.held, s.room)
		}
		if s.fits(k, d) && (best == none || s.free[d]+s.work[d][k] < s.free[best]+s.work[best][k]) {
			best = d
		}
	}
	if best == none {
		return roomiest(s.held, s.room)
	}
	return best
}

// next returns the index of the ready node, and the device, that start first; ties
// go to the higher level, then the lower id, then the lower device.
func (s *memoryETF) next(ready []graph.OpID) (at, device int) {
	at, best := none, 0.0
	for k, v := range ready {
		from, end := 0, s.d
		if d := s.of[s.group[v]]; d != none {
			from, end = d, d+1
		} else if !s.fitsSomewhere(s.group[v]) {
			from = roomiest(s.held, s.room)
			end = from + 1
		}
		for d := from; d < end; d++ {
			if end-from > 1 && !s.fits(s.group[v], d) {
				continue
			}
			start := s.start(v, d)
			if at == none || start < best || start == best && before(s.m.level, v, ready[at]) {
				at, device, best = k, d, start
			}
		}
	}
	return at, device
}

// before reports whether node v goes before w where both could start at once.
func before(level []float64, v, w graph.OpID) bool {
	return level[v] > level[w] || level[v] == level[w] && v < w
}

func (s *memoryETF) fitsSomewhere(k int32) bool {
	for d := range s.d {
		if s.fits(k, d) {
			return true
		}
	}
	return false
}

// start returns when node v could start on device d. A device that awaits a
// favourite child is kept for it, unless v could start on any device by then.
func (s *memoryETF) start(v graph.OpID, d int) float64 {
	at := max(s.free[d], s.ready(v, d, false))
	if w := s.awaited[d]; w != none && graph.OpID(w) != v && s.finish[w] == 0 && at < s.until[d] && !s.urgent(v, at) {
		at = s.until[d]
	}
	return at
}

// urgent reports whether node v could start on every device by time at.
func (s *memoryETF) urgent(v graph.OpID, at float64) bool {
	for d := range s.d {
		if s.ready(v, d, false) > at {
			return false
		}
	}
	return true
}

// place runs node v on device d.
func (s *memoryETF) place(v graph.OpID, d int) {
	if s.of[s.group[v]] == none {
		s.fix(s.group[v], d)
	}
	s.run(v, d, s.ready(v, d, true))
	s.awaited[d] = none
	if s.favourites == nil || s.favourites[v] == none {
		return
	}
	w := graph.OpID(s.favourites[v])
	if e := s.of[s.group[w]]; s.finish[w] == 0 && (e == none || e == d) {
		s.awaited[d], s.until[d] = int32(w), s.finish[v]+s.between(v, w)
	}
}

// between returns the mean time that moving what w reads of v takes.
func (s *memoryETF) between(v, w graph.OpID) (seconds float64) {
	s.m.predecessors(w, func(q graph.OpID, b units.Bytes) {
		if q == v {
			seconds += s.m.transfer(b)
		}
	})
	return seconds
}

// ready is that of the state, with the latency of control dependencies.
func (s *memoryETF) ready(v graph.OpID, d int, commit bool) float64 {
	at := s.state.ready(v, d, commit)
	for _, q := range s.g.Control(v) {
		if e := s.of[s.group[q]]; e != none && e != d {
			latency, _ := s.p.Machine.Transfer(e, d)
			at = max(at, s.finish[q]+float64(latency))
		}
	}
	return at
}
