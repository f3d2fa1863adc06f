package baechi

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

const none = -1

// model is what the algorithms decide on: the nodes of a contraction to cells, in
// groups that share a device. Letters: V nodes, T tensors, K groups, D devices.
type model struct {
	p       *plan.Problem
	c       *unit.Contraction
	g       *graph.Graph // of the contraction
	d       int
	seconds [][]float64 // [D][V]
	group   []int32     // [V]
	source  []bool      // [V] variables that nothing comes before
	memory  []units.Bytes
	level   []float64 // [V] longest path to the end, transfers not counted
	after   [][]graph.OpID
	before  []int // [V] number of nodes to wait for
}

func newModel(p *plan.Problem) (*model, error) {
	m := &model{p: p, d: p.Machine.NumDevices()}
	cells := p.Units.Levels[unit.Cell]
	var perTensor units.Bytes
	if m.d > 1 {
		latency, bandwidth := p.Machine.Transfer(0, 1)
		perTensor = units.Bytes(float64(latency) * float64(bandwidth))
	}
	c, err := unit.Contract(p.Graph, cells, perTensor)
	if err != nil {
		return nil, err
	}
	m.c, m.g = c, c.Graph
	n := m.g.NumOps()
	for v := range m.d {
		m.seconds = append(m.seconds, c.Sum(p.Evaluator.OpSeconds(v)))
	}
	m.group, m.source = make([]int32, n), make([]bool, n)
	number := map[int32]int32{}
	for v := range n {
		u := c.Unit(graph.OpID(v))
		if r := p.Units.Roles[unit.Cell]; r != nil {
			m.source[v] = r[u] == unit.Weights && len(m.g.Inputs(graph.OpID(v)))+len(m.g.Control(graph.OpID(v))) == 0
		}
		if ps := p.Units.Partners[unit.Cell]; ps != nil && ps[u] >= 0 {
			u = min(u, ps[u])
		}
		k, ok := number[u]
		if !ok {
			k = int32(len(number))
			number[u] = k
		}
		m.group[v] = k
	}
	m.memory = make([]units.Bytes, len(number))
	for v := range n {
		m.memory[m.group[v]] += m.holds(graph.OpID(v))
	}
	m.order()
	return m, nil
}

// holds returns the bytes that node v keeps: what is resident and what it gives to
// others.
func (m *model) holds(v graph.OpID) units.Bytes {
	b := m.g.Op(v).Resident
	first, end := m.g.Outputs(v)
	for t := first; t < end; t++ {
		if x := m.g.Tensor(t); !x.Resident {
			b += x.Bytes
		}
	}
	return b
}

// order finds who waits for whom, sources left out, and the levels.
func (m *model) order() {
	n := m.g.NumOps()
	m.level, m.after, m.before = make([]float64, n), make([][]graph.OpID, n), make([]int, n)
	for v := n - 1; v >= 0; v-- {
		m.level[v] += m.seconds[0][v]
		m.predecessors(graph.OpID(v), func(q graph.OpID, _ units.Bytes) {
			m.level[q] = max(m.level[q], m.level[v])
			if !m.source[q] {
				m.after[q] = append(m.after[q], graph.OpID(v))
				m.before[v]++
			}
		})
	}
}

// predecessors calls f for each thing that node v waits for, a node as often as v
// reads tensors of it.
func (m *model) predecessors(v graph.OpID, f func(q graph.OpID, b units.Bytes)) {
	for _, t := range m.g.Inputs(v) {
		f(m.g.Tensor(t).Producer, m.g.Tensor(t).Bytes)
	}
	for _, q := range m.g.Control(v) {
		f(q, 0)
	}
}

// expand writes the devices of all ops, [N], for those of the groups, [K].
func (m *model) expand(of []int, device []uint8) {
	for i, v := range m.c.Of {
		device[i] = uint8(max(0, of[m.group[v]]))
	}
}
