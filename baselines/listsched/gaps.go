package listsched

import (
	"math"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

// gapFilling is a partial schedule whose devices and links have timelines with gaps: the ops placed so far, what devices and links
// do when, what memory holds.
type gapFilling struct {
	p       *plan.Problem
	g       *graph.Graph
	ops     *unit.Partition
	d       int
	seconds [][]float64 // [D][N]

	device  []int     // [N], or none
	finish  []float64 // [N]
	fixed   []int     // [units] device of the co-location group, or none
	source  []bool    // [N] placed with its first consumer
	arrival []float64 // [T*D] when the tensor is there; NaN: not sent
	devices []schedule.Timeline
	links   []schedule.Timeline
	// idle says that links never make a transfer wait: the network of the papers,
	// for the tests that check their examples.
	idle bool
	// copies are those of a machine on which they occupy the sender, else nil.
	copies *sendingCopies

	live     []units.Bytes // [D] by order of decision
	resident []units.Bytes // [units]
	unread   []int         // [T] consumers not yet placed
	bound    []int32       // units whose device became fixed since ETF last looked
}

func newGapFilling(p *plan.Problem) *gapFilling {
	n, d := p.Graph.NumOps(), p.Machine.NumDevices()
	s := &gapFilling{
		p: p, g: p.Graph, ops: p.Units.Levels[unit.Op], d: d,
		device: make([]int, n), finish: make([]float64, n), source: make([]bool, n),
		arrival: make([]float64, p.Graph.NumTensors()*d),
		devices: make([]schedule.Timeline, d), links: make([]schedule.Timeline, len(p.Machine.Links)),
		live: make([]units.Bytes, d), unread: make([]int, p.Graph.NumTensors()),
	}
	s.fixed = make([]int, s.ops.NumUnits())
	s.resident = make([]units.Bytes, s.ops.NumUnits())
	for v := range d {
		s.seconds = append(s.seconds, p.Evaluator.OpSeconds(v))
	}
	if p.Machine.OccupiesSender() {
		s.copies = &sendingCopies{make([]float64, p.Graph.NumTensors()), make([]bool, p.Graph.NumTensors()*d)}
	}
	for u := range s.fixed {
		s.fixed[u] = none
	}
	for k := range s.arrival {
		s.arrival[k] = math.NaN()
	}
	for t := range s.unread {
		s.unread[t] = len(s.g.Consumers(graph.TensorID(t)))
	}
	for i := range n {
		s.device[i] = none
		s.resident[s.ops.Of[i]] += s.g.Op(graph.OpID(i)).Resident
		s.source[i] = s.isSource(graph.OpID(i))
	}
	return s
}

// isSource reports whether op i gives what the step starts with: a variable, a
// constant, an input, or a view of these alone.
func (s *gapFilling) isSource(i graph.OpID) bool {
	if len(s.g.Control(i)) > 0 {
		return false
	}
	switch s.g.Op(i).Kind.Class() {
	case graph.ClassVariable, graph.ClassConst, graph.ClassInput:
		return len(s.g.Inputs(i)) == 0
	case graph.ClassMeta:
		for _, t := range s.g.Inputs(i) {
			if !s.source[s.g.Tensor(t).Producer] {
				return false
			}
		}
		return true
	}
	return false
}

// ready returns when everything op i needs can be on device v. Transfers are
// looked at one by one; place lets them compete.
func (s *gapFilling) ready(i graph.OpID, v int) float64 {
	var at float64
	for _, t := range s.g.Inputs(i) {
		q := s.g.Tensor(t).Producer
		if s.device[q] == none {
			continue // a source, which will be placed here
		}
		if a := s.arrival[int(t)*s.d+v]; a == a {
			at = max(at, a)
		} else {
			_, end := s.transfer(t, q, v, s.g.Tensor(t).Bytes)
			at = max(at, end, s.sent(t, q, v, s.g.Tensor(t).Bytes)-s.seconds[v][i])
		}
	}
	for _, q := range s.g.Control(i) {
		if s.device[q] == none {
			continue
		}
		end := s.finish[q]
		if w := s.device[q]; w != v && s.copies != nil {
			continue // each device reads its own copy of what the op behind would change
		} else if w != v {
			latency, _ := s.p.Machine.Transfer(w, v)
			end += float64(latency)
		}
		at = max(at, end)
	}
	return at
}

// transfer returns the first span that every link from q's device to v has for b
// bytes of tensor t. Where copies occupy the sender it ends with the delivery.
func (s *gapFilling) transfer(t graph.TensorID, q graph.OpID, v int, b units.Bytes) (start, end float64) {
	w := s.device[q]
	if s.copies != nil {
		return s.finish[q], s.copied(t, q, v, b) + float64(s.p.Machine.EndCosts(w, v).Delivery)
	}
	length := float64(s.p.Machine.TransferSeconds(w, v, b))
	route := s.p.Machine.Route(w, v)
	start = s.finish[q]
	for again := true; again; {
		again = false
		for _, l := range route {
			if at := s.links[l].Earliest(start, length); at > start {
				start, again = at, true
			}
		}
	}
	return start, start + length
}

// place puts op i on device v, with the sources it reads, after what it needs has
// arrived; insert allows it into an earlier gap.
func (s *gapFilling) place(i graph.OpID, v int, insert bool) {
	s.bind(s.ops.Of[i], v) // before its sources, some of which may be of its group
	for _, t := range s.g.Inputs(i) {
		if q := s.g.Tensor(t).Producer; s.device[q] == none {
			s.place(q, s.choice(q, v), insert)
		}
	}
	for _, q := range s.g.Control(i) {
		if s.device[q] == none {
			s.place(q, s.choice(q, v), insert)
		}
	}
	for _, t := range s.g.Inputs(i) {
		s.send(t, v)
	}
	length := s.seconds[v][i] + s.receipts(i, v)
	start := s.ready(i, v)
	if insert {
		start = s.devices[v].Earliest(start, length)
	} else {
		start = max(start, s.devices[v].Free())
	}
	s.devices[v].Take(start, length)
	s.device[i], s.finish[i] = v, start+length
	s.received(i, v)
	s.hold(i, v)
}

// bind fixes unit u to device v unless it is fixed.
func (s *gapFilling) bind(u int32, v int) {
	if s.fixed[u] == none {
		s.fixed[u] = v
		s.bound = append(s.bound, u)
		s.live[v] += s.resident[u]
	}
}

// choice returns the device of source q when its consumer is on v: that of its
// group, else v, or where there is most room when v has none.
func (s *gapFilling) choice(q graph.OpID, v int) int {
	if f := s.fixed[s.ops.Of[q]]; f != none {
		return f
	}
	if s.room(q, v) < 0 {
		return s.roomiest(q)
	}
	return v
}

// send moves tensor t to device v unless it is there.
func (s *gapFilling) send(t graph.TensorID, v int) {
	x := s.g.Tensor(t)
	at := &s.arrival[int(t)*s.d+v]
	if *at == *at || s.device[x.Producer] == v {
		return
	}
	start, end := s.transfer(t, x.Producer, v, x.Bytes)
	switch w := s.device[x.Producer]; {
	case s.copies != nil:
		s.copyOut(t, x.Producer, v, x.Bytes)
	case !s.idle:
		for _, l := range s.p.Machine.Route(w, v) {
			s.links[l].Take(start, end-start)
		}
	}
	*at = end
	s.live[v] += x.Bytes
}

// hold counts what op i, now on v, adds to memory and what it lets go.
func (s *gapFilling) hold(i graph.OpID, v int) {
	first, end := s.g.Outputs(i)
	for t := first; t < end; t++ {
		s.arrival[int(t)*s.d+v] = s.finish[i]
		if !s.g.Tensor(t).Resident && s.unread[t] > 0 {
			s.live[v] += s.g.Tensor(t).Bytes
		}
	}
	for k, t := range s.g.Inputs(i) {
		if slices.Contains(s.g.Inputs(i)[:k], t) {
			continue
		}
		if s.unread[t]--; s.unread[t] == 0 {
			x := s.g.Tensor(t)
			for w := range s.d {
				if a := s.arrival[int(t)*s.d+w]; a == a && !(x.Resident && w == s.device[x.Producer]) {
					s.live[w] -= x.Bytes
				}
			}
		}
	}
}

// room returns the bytes that device v would have left with op i on it.
func (s *gapFilling) room(i graph.OpID, v int) units.Bytes {
	left := s.p.Machine.Devices[v].Memory - s.live[v] - s.g.Op(i).Workspace
	if u := s.ops.Of[i]; s.fixed[u] == none {
		left -= s.resident[u]
	}
	first, end := s.g.Outputs(i)
	for t := first; t < end; t++ {
		if !s.g.Tensor(t).Resident {
			left -= s.g.Tensor(t).Bytes
		}
	}
	for _, t := range s.g.Inputs(i) {
		q := s.g.Tensor(t).Producer
		switch {
		case s.device[q] != none:
			if a := s.arrival[int(t)*s.d+v]; a != a {
				left -= s.g.Tensor(t).Bytes
			}
		case s.fixed[s.ops.Of[q]] == none:
			left -= s.resident[s.ops.Of[q]]
		}
	}
	return left
}

// roomiest returns the device that op i leaves the most bytes.
func (s *gapFilling) roomiest(i graph.OpID) int {
	best := 0
	for v := range s.d {
		if s.room(i, v) > s.room(i, best) {
			best = v
		}
	}
	return best
}

// momentary is the time, in seconds, up to which an op counts as one without work.
const momentary = 1e-9

// alone returns the device of op q, which nothing read: of those where it fits, if any, the one on
// which it ends first, or the roomiest where it has no work.
func (s *gapFilling) alone(q graph.OpID) int {
	best, first := none, 0.0
	for v := range s.d {
		x := s.seconds[v][q]
		if x <= momentary {
			return s.roomiest(q)
		}
		if end := s.devices[v].Free() + x; s.room(q, v) >= 0 && (best == none || end < first) {
			best, first = v, end
		}
	}
	if best == none {
		return s.roomiest(q)
	}
	return best
}

// placement returns the placement once every op is placed. Sources that nothing
// reads are placed where they end first, or where there is most room.
func (s *gapFilling) placement() []uint8 {
	device := make([]uint8, len(s.device))
	for i := range s.device {
		if s.device[i] == none {
			q := graph.OpID(i)
			s.place(q, s.choice(q, s.alone(q)), false)
		}
		device[i] = uint8(s.device[i])
	}
	return device
}
