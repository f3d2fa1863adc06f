package listsched

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

const none = -1

// nodes are what a list scheduler on units visits: the nodes of a coarsened graph, in
// groups that share a device. Letters: V nodes, T tensors of the coarsened graph, K
// groups, D devices.
type nodes struct {
	p       *plan.Problem
	c       *unit.Coarsened
	g       *graph.Graph // of the coarsened graph
	d       int
	seconds [][]float64   // [D][V]
	group   []int32       // [V]
	memory  []units.Bytes // [K] resident bytes and what the group's nodes give to others
	work    [][]float64   // [D][K] sum of the group's seconds
}

// newNodes coarsens p to its units of level l; group, given the coarsened graph, returns
// each node's group, [V], and their number.
func newNodes(p *plan.Problem, l unit.Level, group func(*unit.Coarsened) ([]int32, int)) (*nodes, error) {
	c, seconds, err := schedule.Coarsen(p, p.Units.Levels[l])
	if err != nil {
		return nil, err
	}
	n := &nodes{p: p, c: c, g: c.Graph, d: p.Machine.NumDevices(), seconds: seconds}
	of, number := group(c)
	n.group, n.memory = of, make([]units.Bytes, number)
	for v := range graph.OpID(n.g.NumOps()) {
		b := n.g.Op(v).Resident
		first, end := n.g.Outputs(v)
		for t := first; t < end; t++ {
			if x := n.g.Tensor(t); !x.Resident {
				b += x.Bytes
			}
		}
		n.memory[of[v]] += b
	}
	for _, column := range seconds {
		w := make([]float64, number)
		for v, x := range column {
			w[of[v]] += x
		}
		n.work = append(n.work, w)
	}
	return n, nil
}

// byUnit makes a group of each of n units.
func byUnit(n int) func(*unit.Coarsened) ([]int32, int) {
	return func(c *unit.Coarsened) ([]int32, int) {
		of := make([]int32, c.Graph.NumOps())
		for v := range of {
			of[v] = c.Unit(graph.OpID(v))
		}
		return of, n
	}
}

// byPair makes a group of each unit and its counterpart, numbered by their first nodes.
func byPair(counterparts []int32) func(*unit.Coarsened) ([]int32, int) {
	return func(c *unit.Coarsened) ([]int32, int) {
		of, number := make([]int32, c.Graph.NumOps()), map[int32]int32{}
		for v := range of {
			u := c.Unit(graph.OpID(v))
			if counterparts != nil && counterparts[u] >= 0 {
				u = min(u, counterparts[u])
			}
			k, ok := number[u]
			if !ok {
				k = int32(len(number))
				number[u] = k
			}
			of[v] = k
		}
		return of, len(number)
	}
}

// sources marks the nodes that hold variables and that nothing comes before, [V].
func sources(c *unit.Coarsened, roles []unit.Role) []bool {
	source := make([]bool, c.Graph.NumOps())
	for v := range source {
		id := graph.OpID(v)
		source[v] = roles != nil && roles[c.Unit(id)] == unit.Weights && len(c.Graph.Inputs(id))+len(c.Graph.Control(id)) == 0
	}
	return source
}

// expand writes the devices of all ops, [N], for those of the groups, [K].
func (n *nodes) expand(of []int, device []uint8) {
	for i, v := range n.c.Of {
		device[i] = uint8(max(0, of[n.group[v]]))
	}
}

// state is a schedule of nodes under way.
type state struct {
	*nodes
	room    []units.Bytes // [D] that may be given away
	held    []units.Bytes // [D]
	load    []float64     // [D] work of the groups decided
	of      []int         // [K] device, or none
	finish  []float64     // [V] 0: not run
	free    []float64     // [D]
	arrival *schedule.Arrivals
	// elsewhere returns the device of a variable that does not fit its first reader's.
	elsewhere func(reader int) int
}

func newState(n *nodes, room []units.Bytes) *state {
	s := &state{nodes: n, room: room, held: make([]units.Bytes, n.d), load: make([]float64, n.d), of: make([]int, len(n.memory)), finish: make([]float64, n.g.NumOps()),
		free: make([]float64, n.d), arrival: schedule.NewArrivals(n.p.Machine, n.g.NumTensors())}
	s.reset()
	return s
}

// reset begins a schedule.
func (s *state) reset() {
	for k := range s.of {
		s.of[k] = none
	}
	clear(s.held)
	clear(s.load)
	clear(s.finish)
	clear(s.free)
	s.arrival.Reset()
}

// fits reports whether group k still fits device d.
func (s *state) fits(k int32, d int) bool { return s.held[d]+s.memory[k] <= s.room[d] }

// fix puts group k on device d.
func (s *state) fix(k int32, d int) {
	s.of[k] = d
	s.held[d] += s.memory[k]
	s.load[d] += s.work[d][k]
}

// ready returns when node v's operands are on device d. With commit it sends what
// is not there and places the variables that are read for the first time.
func (s *state) ready(v graph.OpID, d int, commit bool) (at float64) {
	for _, t := range s.g.Inputs(v) {
		x := s.g.Tensor(t)
		k := s.group[x.Producer]
		if s.of[k] == none {
			if !commit {
				continue // a variable, which will be where its first reader is
			}
			to := d
			if !s.fits(k, d) {
				to = s.elsewhere(d)
			}
			s.fix(k, to)
		}
		made := s.finish[x.Producer]
		if from := s.of[k]; from != d {
			made = s.arrival.When(t, x.Bytes, from, made, d, commit)
		}
		at = max(at, made)
	}
	for _, q := range s.g.Control(v) {
		at = max(at, s.finish[q])
	}
	return at
}

// run has node v begin on device d when it is ready there and the device is free.
func (s *state) run(v graph.OpID, d int, ready float64) {
	s.finish[v] = max(s.free[d], ready) + s.seconds[d][v]
	s.free[d] = s.finish[v]
}

// roomiest returns the device that has most left.
func roomiest(held, room []units.Bytes) int {
	best := 0
	for d := range held {
		if room[d]-held[d] > room[best]-held[best] {
			best = d
		}
	}
	return best
}
