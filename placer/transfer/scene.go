package transfer

import (
	"cmp"
	"fmt"
	"slices"

	"placer/baselines/human"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

const none = -1

// Scene is a problem as the policy reads it at one granularity: the order in
// which units are decided, what each is like, and what a list scheduler needs to
// know how far the devices are when its turn comes. It does not change; samples
// share it. Letters: V nodes and T tensors of the contraction, U units, D devices.
type Scene struct {
	problem *plan.Problem
	name    string // of a unit
	level   unit.Level
	part    *unit.Partition
	d       int
	uniform bool // devices and routes are alike, so devices not yet used are, too

	nodes   *unit.Contraction // at cells, whatever the level: a coarser schedule would hide what runs side by side
	unit    []int32           // [V]
	seconds [][]float64       // [D][V]
	work    [][]float64       // [D][U]
	own     []float64         // [U] mean of work over devices
	total   float64           // sum of own
	mean    float64           // total/D
	resided []units.Bytes
	memory  []units.Bytes // [D]
	steps   []step
	turns   int // steps that decide

	partner []int32     // [U] or none
	near    [][]contact // [U]
	chain   grouping
	segment grouping
	layer   grouping
	expert  grouping // the device that a human expert would choose
	block   grouping // the block of a balanced cut along the forward pass

	static []float32 // [U, NumStatic]
}

// A step of the decision process, in order: decide a unit, because node runs
// next or because node reads what the unit holds; or run node.
type step struct {
	node graph.OpID
	unit int32 // to decide, or none: run node
}

// contact is what a unit exchanges with another one.
type contact struct {
	unit    int32
	seconds float64 // that the transfers take between two devices
}

// grouping assigns units to groups of relatives.
type grouping struct {
	of      []int32   // [U]
	seconds []float64 // [groups]
	place   []float64 // [U] 0..1 within the group, by time
}

// contract returns the nodes of p that schedules are made of.
func contract(p *plan.Problem) (*unit.Contraction, error) {
	var perTensor units.Bytes
	if p.Machine.NumDevices() > 1 {
		latency, bandwidth := p.Machine.Transfer(0, 1)
		perTensor = units.Bytes(float64(latency) * float64(bandwidth))
	}
	c, err := unit.Contract(p.Graph, p.Units.Levels[unit.Cell], perTensor)
	if err != nil {
		return nil, fmt.Errorf("transfer: %w", err)
	}
	return c, nil
}

// newScene returns p at level l, with the nodes of contract.
func newScene(p *plan.Problem, nodes *unit.Contraction, l unit.Level) (*Scene, error) {
	if l == unit.Op || l >= unit.NumLevels {
		return nil, fmt.Errorf("transfer: units of level %v, want cell, segment or chain", l)
	}
	s := &Scene{problem: p, name: l.String(), level: l, part: p.Units.Levels[l], d: p.Machine.NumDevices(), uniform: uniform(p)}
	s.nodes = nodes
	parent := p.Units.Parents(unit.Cell, l)
	s.unit = make([]int32, nodes.Graph.NumOps())
	for v := range s.unit {
		s.unit[v] = parent[nodes.Unit(graph.OpID(v))]
	}
	s.times()
	s.partner = make([]int32, s.part.NumUnits())
	for u := range s.partner {
		s.partner[u] = none
	}
	if ps := p.Units.Partners[l]; ps != nil {
		copy(s.partner, ps)
	}
	s.contacts()
	up := s.order()
	s.chain = s.group(p.Units.Parents(l, unit.Chain))
	s.segment = s.group(p.Units.Parents(l, max(l, unit.Segment)))
	s.layer = s.group(s.layers())
	s.cuts()
	s.describe(up)
	return s, nil
}

// cuts groups the units by two rules of thumb. Following either is one way to
// place the graph; which of them to follow where, and where to leave both, is the
// policy's to learn.
func (s *Scene) cuts() {
	s.expert = s.group(s.Labels(human.Devices(s.problem)))
	s.block = s.group(s.Labels(s.problem.Units.Blocks(s.problem.Evaluator.OpSeconds(0), s.d)))
}

// uniform reports whether all devices and all routes of p's machine are alike.
func uniform(p *plan.Problem) bool {
	m := p.Machine
	for i := range m.Devices {
		if !m.Devices[0].SameFigures(&m.Devices[i]) {
			return false
		}
		for k := range m.Devices {
			if i == k || len(m.Devices) < 2 {
				continue
			}
			if len(m.Route(i, k)) != len(m.Route(0, 1)) || m.TransferSeconds(i, k, 1<<20) != m.TransferSeconds(0, 1, 1<<20) {
				return false
			}
		}
	}
	return true
}

// times sums times and bytes over nodes and units.
func (s *Scene) times() {
	n, g := s.part.NumUnits(), s.nodes.Graph
	s.own, s.resided = make([]float64, n), make([]units.Bytes, n)
	for d := range s.d {
		x := s.nodes.Sum(s.problem.Evaluator.OpSeconds(d))
		w := make([]float64, n)
		for v, t := range x {
			w[s.unit[v]] += t
		}
		for u, t := range w {
			s.own[u] += t / float64(s.d)
		}
		s.seconds, s.work = append(s.seconds, x), append(s.work, w)
		s.memory = append(s.memory, s.problem.Machine.Devices[d].Memory)
	}
	for u := range s.own {
		s.total += s.own[u]
	}
	s.total = max(s.total, 1e-9) // a graph without work
	s.mean = s.total / float64(s.d)
	// Activations wait for the backward pass; gradients are gone before the next
	// ones come.
	roles := s.problem.Units.Roles[s.level]
	for v := range graph.OpID(g.NumOps()) {
		u := s.unit[v]
		s.resided[u] += g.Op(v).Resident
		first, end := g.Outputs(v)
		for t := first; t < end; t++ {
			if x := g.Tensor(t); !x.Resident && (roles == nil || roles[u] == unit.Forward) {
				s.resided[u] += x.Bytes
			}
		}
	}
}

// move returns the time that b bytes take between two devices.
func (s *Scene) move(b units.Bytes) float64 {
	if s.d < 2 {
		return 0
	}
	return float64(s.problem.Machine.TransferSeconds(0, 1, b))
}

// contacts lists, for each unit, those that it exchanges tensors with.
func (s *Scene) contacts() {
	g := s.nodes.Graph
	type edge struct {
		a, b    int32
		seconds float64
	}
	var edges []edge
	var to []int32
	for t := range graph.TensorID(g.NumTensors()) {
		x := g.Tensor(t)
		a := s.unit[x.Producer]
		to = to[:0]
		for _, c := range g.Consumers(t) {
			if b := s.unit[c]; b != a && !slices.Contains(to, b) {
				to = append(to, b)
				w := s.move(x.Bytes)
				edges = append(edges, edge{a, b, w}, edge{b, a, w})
			}
		}
	}
	slices.SortStableFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	s.near = make([][]contact, s.part.NumUnits())
	for _, e := range edges {
		if k := len(s.near[e.a]) - 1; k >= 0 && s.near[e.a][k].unit == e.b {
			s.near[e.a][k].seconds += e.seconds
			continue
		}
		s.near[e.a] = append(s.near[e.a], contact{e.b, e.seconds})
	}
}

// order makes the steps: nodes by falling upward rank, the longest way to the end
// with mean op times and, on every edge, the mean time of a transfer (HEFT);
// variables wait for their first reader. It returns the ranks, [V].
func (s *Scene) order() []float64 {
	g := s.nodes.Graph
	up := make([]float64, g.NumOps())
	for v := g.NumOps() - 1; v >= 0; v-- {
		for d := range s.d {
			up[v] += s.seconds[d][v] / float64(s.d)
		}
		for _, t := range g.Inputs(graph.OpID(v)) {
			x := g.Tensor(t)
			up[x.Producer] = max(up[x.Producer], up[v]+s.move(x.Bytes)*float64(s.d-1)/float64(s.d))
		}
		for _, q := range g.Control(graph.OpID(v)) {
			up[q] = max(up[q], up[v])
		}
	}
	order := make([]graph.OpID, g.NumOps())
	for v := range order {
		order[v] = graph.OpID(v)
	}
	slices.SortStableFunc(order, func(a, b graph.OpID) int { return cmp.Compare(up[b], up[a]) })
	roles := s.problem.Units.Roles[s.level]
	decided := make([]bool, s.part.NumUnits())
	decide := func(u int32, v graph.OpID) {
		if !decided[u] {
			decided[u] = true
			s.turns++
			s.steps = append(s.steps, step{v, u})
		}
	}
	for _, v := range order {
		u := s.unit[v]
		if !decided[u] && roles != nil && roles[u] == unit.Weights && len(g.Inputs(v)) == 0 {
			continue // a variable: it is ready everywhere, its first reader decides when
		}
		decide(u, v)
		for _, t := range g.Inputs(v) {
			decide(s.unit[g.Tensor(t).Producer], v)
		}
		s.steps = append(s.steps, step{v, none})
	}
	for u := range decided {
		decide(int32(u), s.nodeOf(int32(u)))
	}
	return up
}

// nodeOf returns a node of unit u.
func (s *Scene) nodeOf(u int32) graph.OpID {
	return graph.OpID(s.nodes.Of[s.part.Ops[u][0]])
}

// group sums the times of the groups that of, [U], assigns units to.
func (s *Scene) group(of []int32) grouping {
	x := grouping{of: of, place: make([]float64, len(of))}
	for u, k := range of {
		for int(k) >= len(x.seconds) {
			x.seconds = append(x.seconds, 0)
		}
		x.place[u] = x.seconds[k] + s.own[u]/2
		x.seconds[k] += s.own[u]
	}
	for u, k := range of {
		x.place[u] /= max(x.seconds[k], 1e-12)
	}
	return x
}

// layers returns the layer that most of each unit's time belongs to, [U]: the
// graph's annotation, else that of its partner, else 0.
func (s *Scene) layers() []int32 {
	g, seconds := s.problem.Graph, s.problem.Evaluator.OpSeconds(0)
	last := int32(0)
	for i := range g.NumOps() {
		last = max(last, g.Op(graph.OpID(i)).Layer)
	}
	of := make([]int32, s.part.NumUnits())
	votes := make([]float64, last+1)
	for u, ops := range s.part.Ops {
		clear(votes)
		for _, i := range ops {
			if l := g.Op(i).Layer; l > 0 {
				votes[l] += seconds[i] + 1e-12
			}
		}
		for l := range votes {
			if votes[l] > votes[of[u]] {
				of[u] = int32(l)
			}
		}
	}
	for u, q := range s.partner {
		if of[u] == 0 && q >= 0 {
			of[u] = of[q]
		}
	}
	return of
}

// Turns returns the number of decisions.
func (s *Scene) Turns() int { return s.turns }
