package exact

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
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
	links              []int32
}

func (r *route) seconds(b units.Bytes) float64 { return r.latency + float64(b)/r.bandwidth }

func newTable(p *plan.Problem) *table {
	g := p.Graph
	t := &table{p: p, n: g.NumOps(), d: p.Machine.NumDevices(), units: p.Units.Levels[unit.Op]}
	for v := range t.d {
		t.seconds = append(t.seconds, p.Evaluator.OpSeconds(v))
		for w := range t.d {
			latency, bandwidth := p.Machine.Transfer(v, w)
			t.routes = append(t.routes, route{float64(latency), float64(bandwidth), p.Machine.Route(v, w)})
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
