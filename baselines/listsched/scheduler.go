package listsched

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

const none = -1

// scheduler list-schedules one problem at one level. Letters: V nodes, T tensors
// of the contraction, U units.
type scheduler struct {
	p       *plan.Problem
	level   unit.Level
	units   *unit.Partition
	c       *unit.Contraction
	d       int
	seconds [][]float64 // [D][V]
	work    [][]float64 // [D][U] sum over the unit
	mean    float64     // of the work on the first device over devices
	order   []graph.OpID
	source  []bool        // [U] variables: nothing comes before their first node
	resided []units.Bytes // [U] resident bytes and what the unit's nodes give to others

	// Of the run under way:
	device  []int     // [U], or none
	finish  []float64 // [V]
	free    []float64 // [D]
	load    []float64 // [D] work of the units decided
	held    []units.Bytes
	arrival *Arrivals
}

func newScheduler(p *plan.Problem, l unit.Level) (*scheduler, error) {
	var perTensor units.Bytes
	d := p.Machine.NumDevices()
	if d > 1 {
		latency, bandwidth := p.Machine.Transfer(0, 1)
		perTensor = units.Bytes(float64(latency) * float64(bandwidth))
	}
	c, err := unit.Contract(p.Graph, p.Units.Levels[l], perTensor)
	if err != nil {
		return nil, err
	}
	s := &scheduler{p: p, level: l, units: p.Units.Levels[l], c: c, d: d}
	n := s.units.NumUnits()
	s.resided, s.source = make([]units.Bytes, n), make([]bool, n)
	for v := range d {
		s.seconds = append(s.seconds, c.Sum(p.Evaluator.OpSeconds(v)))
		w := make([]float64, n)
		for k, x := range s.seconds[v] {
			w[c.Unit(graph.OpID(k))] += x
		}
		s.work = append(s.work, w)
	}
	for _, w := range s.work[0] {
		s.mean += w / float64(d)
	}
	for v := range graph.OpID(c.Graph.NumOps()) {
		u := c.Unit(v)
		s.resided[u] += c.Graph.Op(v).Resident
		first, end := c.Graph.Outputs(v)
		for t := first; t < end; t++ {
			if x := c.Graph.Tensor(t); !x.Resident {
				s.resided[u] += x.Bytes
			}
		}
		if r := p.Units.Roles[l]; r != nil {
			s.source[u] = r[u] == unit.Weights
		}
	}
	s.rank()
	nv := c.Graph.NumOps()
	s.device, s.finish = make([]int, n), make([]float64, nv)
	s.free, s.load, s.held = make([]float64, d), make([]float64, d), make([]units.Bytes, d)
	s.arrival = NewArrivals(p.Machine, c.Graph.NumTensors())
	return s, nil
}

// rank orders the nodes by falling upward rank: the longest way to the end, with
// mean op times and, on every edge, the mean time of a transfer.
func (s *scheduler) rank() {
	g, m := s.c.Graph, s.p.Machine
	up := make([]float64, g.NumOps())
	for v := g.NumOps() - 1; v >= 0; v-- {
		own := 0.0
		for d := range s.d {
			own += s.seconds[d][v] / float64(s.d)
		}
		up[v] += own
		for _, t := range g.Inputs(graph.OpID(v)) {
			x := g.Tensor(t)
			e := up[v]
			if s.d > 1 {
				e += float64(m.TransferSeconds(0, 1, x.Bytes)) * float64(s.d-1) / float64(s.d)
			}
			up[x.Producer] = max(up[x.Producer], e)
		}
		for _, q := range g.Control(graph.OpID(v)) {
			up[q] = max(up[q], up[v])
		}
	}
	// Nodes of no time tie with what they wait for; a node's id is above those.
	s.order = make([]graph.OpID, g.NumOps())
	for v := range s.order {
		s.order[v] = graph.OpID(v)
	}
	slices.SortStableFunc(s.order, func(a, b graph.OpID) int { return cmp.Compare(up[b], up[a]) })
}

// run decides every unit by rule r.
func (s *scheduler) run(r rule) {
	for u := range s.device {
		s.device[u] = none
	}
	clear(s.finish)
	clear(s.free)
	clear(s.load)
	clear(s.held)
	s.arrival.Reset()
	for _, v := range s.order {
		u := s.c.Unit(v)
		if s.device[u] == none {
			if s.source[u] && len(s.c.Graph.Inputs(v)) == 0 {
				continue // variables wait for their first reader
			}
			s.decide(v, r)
		}
		d := s.device[u]
		start := max(s.free[d], s.ready(v, d, true))
		s.finish[v] = start + s.seconds[d][v]
		s.free[d] = s.finish[v]
	}
}

// decide chooses the device of node v's unit: that of its partner, if that is
// decided; freely chosen, gradients end up far from the activations that they
// read.
func (s *scheduler) decide(v graph.OpID, r rule) {
	u := s.c.Unit(v)
	if ps := s.p.Units.Partners[s.level]; ps != nil && ps[u] >= 0 {
		if d := s.device[ps[u]]; d != none && s.fits(u, d) {
			s.fix(u, d)
			return
		}
	}
	best, at := none, 0.0
	for pass := 0; best == none; pass++ {
		for d := range s.d {
			if pass == 0 && !s.fits(u, d) {
				continue
			}
			x := max(s.free[d], s.ready(v, d, false)) + s.seconds[d][v] + r.cling*s.moving(v, d)
			x += r.balance * (s.load[d] + s.work[d][u])
			if pass > 0 { // nothing fits: the emptiest
				x = float64(s.held[d])
			}
			if best == none || x < at {
				best, at = d, x
			}
		}
	}
	s.fix(u, best)
}

// moving returns the time that transfers of node v's operands to device d take.
func (s *scheduler) moving(v graph.OpID, d int) (sum float64) {
	for _, t := range s.c.Graph.Inputs(v) {
		x := s.c.Graph.Tensor(t)
		if from := s.device[s.c.Unit(x.Producer)]; from != none && from != d && !s.arrival.Sent(t, d) {
			sum += float64(s.p.Machine.TransferSeconds(from, d, x.Bytes))
		}
	}
	return sum
}

// fits reports whether unit u still fits device d, if all that units give to
// others stayed in memory.
func (s *scheduler) fits(u int32, d int) bool {
	return s.held[d]+s.resided[u] <= s.p.Machine.Devices[d].Memory
}

// home returns d if unit u fits there, else the device that holds least.
func (s *scheduler) home(u int32, d int) int {
	if s.fits(u, d) {
		return d
	}
	for e := range s.d {
		if s.held[e] < s.held[d] {
			d = e
		}
	}
	return d
}

func (s *scheduler) fix(u int32, d int) {
	s.device[u] = d
	s.load[d] += s.work[d][u]
	s.held[d] += s.resided[u]
}

// ready returns when node v's operands are on device d. With commit it sends what
// is not there and gives the variables read for the first time their place.
func (s *scheduler) ready(v graph.OpID, d int, commit bool) (at float64) {
	g := s.c.Graph
	for _, t := range g.Inputs(v) {
		x := g.Tensor(t)
		u := s.c.Unit(x.Producer)
		if s.device[u] == none {
			if !commit {
				continue // will be where its first reader is
			}
			s.fix(u, s.home(u, d))
		}
		from := s.device[u]
		y := s.finish[x.Producer]
		if from != d {
			y = s.arrival.When(t, x.Bytes, from, y, d, commit)
		}
		at = max(at, y)
	}
	for _, q := range g.Control(v) {
		at = max(at, s.finish[q])
	}
	return at
}
