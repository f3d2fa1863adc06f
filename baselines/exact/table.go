package exact

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

const none = -1

// table is a problem as arrays. Letters: N ops, U units, M messages, D devices.
type table struct {
	p        *plan.Problem
	n, d     int
	units    *unit.Partition
	seconds  [][]float64 // [D][N]
	least    []float64   // [N] on the fastest device
	resident []units.Bytes
	routes   []route    // [D*D]
	messages []message  // by producer, in the order of sending
	sends    [][]int32  // [N] messages
	waits    []int32    // [N] messages that an op waits for
	before   [][]uint32 // [N] those messages
	classes  []int      // [D] first device that is equal
	// contention is the evaluator's. The event loop follows FIFO and Uncontended; its
	// steps prove nothing under another.
	contention sim.Contention
	// sending says that copies occupy the sender, for which not even the bounds hold:
	// a control dependency takes no time there.
	sending bool
}

// message is what an op sends when it ends: an output with consumers, or the word
// to ops that wait for it.
type message struct {
	from  int32
	bytes units.Bytes
	users []int32
}

// route is the way between two devices.
type route struct {
	latency, bandwidth float64
	links              []int32 // that other transfers may delay it on
}

func (r *route) seconds(b units.Bytes) float64 { return r.latency + float64(b)/r.bandwidth }

// unknownContention stands for an evaluator that does not say how transfers share
// links.
const unknownContention = sim.Uncontended + 1

func newTable(p *plan.Problem) *table {
	g := p.Graph
	t := &table{p: p, n: g.NumOps(), d: p.Machine.NumDevices(), units: p.Units.Levels[unit.Op], sending: p.Machine.OccupiesSender()}
	t.contention = unknownContention
	if s, ok := p.Evaluator.(interface{ Contention() sim.Contention }); ok {
		t.contention = s.Contention()
	}
	for v := range t.d {
		t.seconds = append(t.seconds, p.Evaluator.OpSeconds(v))
		for w := range t.d {
			latency, bandwidth := p.Machine.Transfer(v, w)
			r := route{latency: float64(latency), bandwidth: float64(bandwidth)}
			if t.contention != sim.Uncontended {
				r.links = p.Machine.Route(v, w)
			}
			t.routes = append(t.routes, r)
		}
	}
	t.least, t.waits = make([]float64, t.n), make([]int32, t.n)
	t.sends, t.before = make([][]int32, t.n), make([][]uint32, t.n)
	t.resident = make([]units.Bytes, t.units.NumUnits())
	waiters := make([][]int32, t.n)
	for i := range t.n {
		for _, q := range g.Control(graph.OpID(i)) {
			waiters[q] = append(waiters[q], int32(i))
		}
	}
	for i := range t.n {
		t.least[i] = t.seconds[0][i]
		for _, s := range t.seconds {
			t.least[i] = min(t.least[i], s[i])
		}
		t.resident[t.units.Of[i]] += g.Op(graph.OpID(i)).Resident
		first, end := g.Outputs(graph.OpID(i))
		for x := first; x < end; x++ {
			var users []int32
			for _, v := range g.Consumers(x) {
				users = append(users, int32(v))
			}
			t.emit(message{int32(i), g.Tensor(x).Bytes, users})
		}
		t.emit(message{int32(i), 0, waiters[i]})
	}
	t.classify()
	return t
}

func (t *table) emit(m message) {
	if len(m.users) == 0 {
		return
	}
	k := int32(len(t.messages))
	t.messages = append(t.messages, m)
	t.sends[m.from] = append(t.sends[m.from], k)
	for _, v := range m.users {
		t.waits[v]++
		t.before[v] = append(t.before[v], uint32(k))
	}
}
