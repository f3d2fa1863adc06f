package anneal

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// arena evaluates decisions: it knows the ops of each and the evaluator of their
// graph, the problem's own or its contraction.
type arena struct {
	evaluator plan.Evaluator
	priority  []int32
	device    []uint8        // [ops]
	members   [][]graph.OpID // [decisions] ops; shared
	share     float64        // cost of an evaluation in evaluations of the problem
	memory    units.Bytes    // of the largest device
	heat      float64        // factor of temperatures
	serial    float64        // time of the whole step on the first device
}

// clone returns an arena for another goroutine.
func (a *arena) clone() *arena {
	b := *a
	b.evaluator = a.evaluator.Clone()
	b.device = slices.Clone(a.device)
	return &b
}

func (a *arena) set(u int32, d uint8) {
	for _, i := range a.members[u] {
		a.device[i] = d
	}
}

// What memory that is missing costs: a share of the serial time for any, and that
// much of it for each device's worth.
const (
	anyOverflow = 0.05
	perDevice   = 4
)

// evaluate returns the score of the present decisions and what annealing
// minimises: the time, and more for what does not fit, growing with how much, so
// that it finds its way back into memory.
func (a *arena) evaluate() (plan.Score, float64) {
	s := a.evaluator.Evaluate(a.device, a.priority)
	cost := s.Seconds
	if !s.Feasible() {
		cost += a.serial * (anyOverflow + perDevice*float64(s.Overflow)/float64(a.memory))
	}
	return s, cost
}

func memoryOf(m *hw.Machine) (b units.Bytes) {
	for _, d := range m.Devices {
		b = max(b, d.Memory)
	}
	return b
}

func serialSeconds(e plan.Evaluator) (s float64) {
	for _, x := range e.OpSeconds(0) {
		s += x
	}
	return s
}

// mostNodes is the largest contraction worth searching on, as a share of the
// graph's ops.
const mostNodes = 0.4

// costs satisfies the cost model of package sim.
type costs [][]float64

func (c costs) OpSeconds(i graph.OpID, d int) units.Seconds { return units.Seconds(c[d][i]) }

// coarseArena returns an arena on the contraction of the decisions t, and the
// number of its nodes.
func coarseArena(p *plan.Problem, t *terrain) (*arena, int, error) {
	var perTensor units.Bytes
	if p.Machine.NumDevices() > 1 {
		latency, bandwidth := p.Machine.Transfer(0, 1)
		perTensor = units.Bytes(float64(latency) * float64(bandwidth))
	}
	c, err := unit.Contract(p.Graph, t.fine, perTensor)
	if err != nil {
		return nil, 0, err
	}
	var cs costs
	for d := range p.Machine.NumDevices() {
		cs = append(cs, c.Sum(p.Evaluator.OpSeconds(d)))
	}
	for _, s := range cs {
		for v := range s {
			s[v] = max(s[v], 1e-9) // the simulator wants positive times
		}
	}
	s, err := sim.New(c.Graph, p.Machine, cs, sim.Default())
	if err != nil {
		return nil, 0, err
	}
	n := c.Graph.NumOps()
	a := &arena{
		evaluator: s, device: make([]uint8, n), members: make([][]graph.OpID, len(t.seconds)),
		share: float64(n) / float64(p.Graph.NumOps()), memory: memoryOf(p.Machine), serial: serialSeconds(s),
	}
	if p.Priority != nil {
		a.priority = sim.CriticalPathPriority(c.Graph, cs[0])
	}
	for v := range graph.OpID(n) {
		u := c.Unit(v)
		a.members[u] = append(a.members[u], v)
	}
	return a, n, nil
}
