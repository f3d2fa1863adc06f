package sequential

import (
	"fmt"
	"sync"

	"placer/baselines/rules"
	"placer/graph"
	"placer/graph/unit"
	"placer/graphsage"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

const none = -1

// instance is a problem at one granularity: the order in which units are decided,
// the features of each, and what a list scheduler needs to know how far the devices
// are when a unit is decided. It does not change; rollouts share it. Letters: V nodes and T
// tensors of the coarsened graph, U units, D devices.
type instance struct {
	problem *plan.Problem
	name    string // of a unit
	level   unit.Level
	part    *unit.Partition
	d       int
	uniform bool // devices and routes are alike, so devices not yet used are, too

	coarse
	unit     []int32       // [V]
	work     [][]float64   // [D][U]
	own      []float64     // [U] mean of work over devices
	total    float64       // sum of own
	mean     float64       // total/D
	resident []units.Bytes // [U] what the unit keeps on its device
	memory   []units.Bytes // [D]

	steps       []step
	decisions   int                          // steps that decide
	counterpart []int32                      // [U] a gradient's forward part and the reverse, or none
	exchanges   *schedule.Communication      // in seconds of the transfers between two devices
	turn        []int32                      // [U] units in the order of their decisions
	nearest     func() *graphsage.Neighbours // of units, numbered by turn: those of the longest exchanges
	groups      [numGroupings]grouping
	features    []float32 // [U,numUnitFeatures]
}

// coarse is what the levels of a problem have in common. The graph that schedules are
// made of is at cells, whatever the level of the decisions, for a coarser schedule would
// hide what runs side by side.
type coarse struct {
	nodes         *unit.Coarsened
	seconds       [][]float64 // [D][V]
	expert, block []uint8     // [N] the placements of two rules of thumb
	layer         []int32     // [N] of rules.Layers
	wire          wire
	up, down      []float64    // [V] the longest way from each node to the end, and to it
	order         []graph.OpID // [V] nodes by falling upward rank
}

// wire is the way between two devices.
type wire struct {
	devices   int // of the machine; one alone sends nothing
	latency   units.Seconds
	bandwidth units.BytesPerSecond
}

// transfer returns the time that b bytes take between two devices, in seconds.
func (w wire) transfer(b units.Bytes) float64 {
	if w.devices < 2 {
		return 0
	}
	return float64(w.latency + b.Over(w.bandwidth))
}

// meanTransfer returns the time that b bytes take between two devices drawn at
// random, in seconds.
func (w wire) meanTransfer(b units.Bytes) float64 {
	return w.transfer(b) * float64(w.devices-1) / float64(w.devices)
}

// blocks returns the placement of p by a balanced cut along its forward pass, [N].
func blocks(p *plan.Problem) []uint8 {
	return p.Units.Blocks(p.Evaluator.OpSeconds(0), p.Machine.NumDevices())
}

// coarsen returns the coarse graph of p.
func coarsen(p *plan.Problem) (coarse, error) {
	nodes, seconds, err := schedule.Coarsen(p, p.Units.Levels[unit.Cell])
	if err != nil {
		return coarse{}, fmt.Errorf("sequential: %w", err)
	}
	c := coarse{nodes: nodes, seconds: seconds, expert: rules.ExpertDevices(p), block: blocks(p), layer: rules.Layers(p.Graph), wire: wire{devices: p.Machine.NumDevices()}}
	if c.wire.devices > 1 {
		c.wire.latency, c.wire.bandwidth = p.Machine.Transfer(0, 1)
	}
	c.rank()
	return c, nil
}

// newInstance returns p at level l: cells, segments or chains.
func newInstance(p *plan.Problem, c coarse, l unit.Level) *instance {
	s := &instance{problem: p, name: l.String(), level: l, part: p.Units.Levels[l], d: p.Machine.NumDevices(), uniform: uniform(p), coarse: c}
	parent := p.Units.Parents(unit.Cell, l)
	s.unit = make([]int32, c.nodes.Graph.NumOps())
	for v := range s.unit {
		s.unit[v] = parent[c.nodes.Unit(graph.OpID(v))]
	}
	s.sum()
	s.counterpart = p.Units.Counterparts[l]
	if s.counterpart == nil {
		s.counterpart = filled(s.part.NumUnits())
	}
	s.exchanges = schedule.NewCommunication(s.part.NumUnits(), s.wire.transfer, schedule.Transfers(c.nodes.Graph, s.unit))
	s.plan()
	s.turn = s.decided()
	s.nearest = sync.OnceValue(s.neighbours)
	s.group()
	s.describe()
	return s
}

// mostNeighbours is the number of neighbours that GraphSAGE reads of a unit (GDP,
// section 3.1).
const mostNeighbours = 5

// neighbours returns for each unit, by turn, those of the longest exchanges, longest
// first and of equals the lower unit.
func (s *instance) neighbours() *graphsage.Neighbours {
	at := make([]int32, len(s.turn))
	for t, u := range s.turn {
		at[u] = int32(t)
	}
	nearest := s.exchanges.Heaviest(mostNeighbours)
	n := &graphsage.Neighbours{Start: make([]int32, 1, len(s.turn)+1)}
	for _, u := range s.turn {
		units, _ := nearest.Neighbours(u)
		for _, v := range units {
			n.Index = append(n.Index, at[v])
		}
		n.Start = append(n.Start, int32(len(n.Index)))
	}
	return n
}

// filled returns n times none.
func filled(n int) []int32 {
	x := make([]int32, n)
	fill(x)
	return x
}

// fill sets every element to none.
func fill(x []int32) {
	for i := range x {
		x[i] = none
	}
}

// uniform reports whether all devices and all routes of p's machine are alike.
func uniform(p *plan.Problem) bool {
	const bytes = 1 << 20
	m := p.Machine
	for i := range m.Devices {
		if !m.Devices[0].SameFigures(&m.Devices[i]) {
			return false
		}
		for k := range m.Devices {
			if i != k && (len(m.Route(i, k)) != len(m.Route(0, 1)) || m.TransferSeconds(i, k, bytes) != m.TransferSeconds(0, 1, bytes)) {
				return false
			}
		}
	}
	return true
}

// sum sums times and bytes over nodes and units.
func (s *instance) sum() {
	n, g := s.part.NumUnits(), s.nodes.Graph
	s.own, s.resident = make([]float64, n), make([]units.Bytes, n)
	for d := range s.d {
		w := make([]float64, n)
		for v, t := range s.seconds[d] {
			w[s.unit[v]] += t
		}
		for u, t := range w {
			s.own[u] += t / float64(s.d)
		}
		s.work = append(s.work, w)
		s.memory = append(s.memory, s.problem.Machine.Devices[d].Memory)
	}
	for _, t := range s.own {
		s.total += t
	}
	s.total = max(s.total, 1e-9) // a graph without work
	s.mean = s.total / float64(s.d)
	// Activations wait for the backward pass; gradients are gone before the next
	// ones come.
	roles := s.problem.Units.Roles[s.level]
	for v := range graph.OpID(g.NumOps()) {
		u := s.unit[v]
		s.resident[u] += g.Op(v).Resident
		first, end := g.Outputs(v)
		for t := first; t < end; t++ {
			if x := g.Tensor(t); !x.Resident && (roles == nil || roles[u] == unit.Forward) {
				s.resident[u] += x.Bytes
			}
		}
	}
}

// is reports whether unit u has role r; without roles it has none.
func (s *instance) is(u int32, r unit.Role) bool {
	roles := s.problem.Units.Roles[s.level]
	return roles != nil && roles[u] == r
}
