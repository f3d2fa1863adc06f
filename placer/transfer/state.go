package transfer

import (
	"math"

	"placer/baselines/listsched"
	"placer/graph"
	"placer/units"
)

// state is a sample under way: what a list scheduler would have done so far with
// the units decided. Times are those of the contraction and know nothing of the
// simulator's.
type state struct {
	s       *Scene
	device  []int32    // [U], or none
	finish  []float64  // [V]
	devices []timeline // [D]
	load    []float64  // [D] work of the units decided
	held    []units.Bytes
	arrival *listsched.Arrivals
	number  []int32 // [D] how many devices were used before; none if not used
	used    int32
	last    int32 // device of the last decision
	clock   float64

	chain, segment, layer relatives
	expert, block         relatives
	guide                 Guide
	drafted               bool      // planned is known
	planned               []int32   // [U] device of the draft
	pending               []float64 // [D] work that the draft gives to units not decided yet
	total                 []float64 // [D] scratch: load and pending
	best                  []int32   // [U] the placement, of all drafts, whose schedule ends soonest
	soonest               float64   // when it ends
	ready, start, contact []float64 // [D] scratch
	cost                  []float64 // [D] of the guide, scratch
}

// relatives are sums over the units of a group that are decided.
type relatives struct {
	on   []float64 // [groups*D] seconds
	sum  []float64 // [groups]
	last []int32   // [groups] device of the last one decided
}

func newState(s *Scene) *state {
	g := s.nodes.Graph
	x := &state{
		s: s, device: make([]int32, s.part.NumUnits()), finish: make([]float64, g.NumOps()), devices: make([]timeline, s.d), load: make([]float64, s.d),
		held: make([]units.Bytes, s.d), arrival: listsched.NewArrivals(s.problem.Machine, g.NumTensors()),
		number: make([]int32, s.d), ready: make([]float64, s.d), start: make([]float64, s.d), contact: make([]float64, s.d), cost: make([]float64, s.d), total: make([]float64, s.d),
		planned: make([]int32, s.part.NumUnits()), best: make([]int32, s.part.NumUnits()), pending: make([]float64, s.d),
	}
	for _, r := range []struct {
		to *relatives
		g  *grouping
	}{{&x.chain, &s.chain}, {&x.segment, &s.segment}, {&x.layer, &s.layer}, {&x.expert, &s.expert}, {&x.block, &s.block}} {
		n := len(r.g.seconds)
		*r.to = relatives{make([]float64, n*s.d), make([]float64, n), make([]int32, n)}
	}
	return x
}

// reset begins a sample that g guides.
func (x *state) reset(g Guide) {
	x.guide, x.drafted, x.soonest = g, false, math.Inf(1)
	clear(x.pending)
	x.restart()
}

// revise begins anew with what was decided as the draft.
func (x *state) revise() {
	x.drafted = true
	copy(x.planned, x.device)
	copy(x.pending, x.load)
	x.restart()
}

// keep notes the placement if its schedule ends sooner than all before.
func (x *state) keep() {
	if x.clock < x.soonest {
		x.soonest = x.clock
		copy(x.best, x.device)
	}
}

// restart forgets all decisions.
func (x *state) restart() {
	fill := func(a []int32) {
		for i := range a {
			a[i] = none
		}
	}
	fill(x.device)
	fill(x.number)
	clear(x.finish)
	for d := range x.devices {
		x.devices[d].reset()
	}
	clear(x.load)
	clear(x.held)
	x.arrival.Reset()
	x.used, x.last, x.clock = 0, none, 0
	for _, r := range []*relatives{&x.chain, &x.segment, &x.layer, &x.expert, &x.block} {
		clear(r.on)
		clear(r.sum)
		fill(r.last)
	}
}

// decide puts unit u on device d.
func (x *state) decide(u, d int32) {
	s := x.s
	x.device[u] = d
	x.load[d] += s.work[d][u]
	if x.drafted {
		x.pending[x.planned[u]] -= s.work[x.planned[u]][u]
	}
	x.held[d] += s.resided[u]
	if x.number[d] == none {
		x.number[d] = x.used
		x.used++
	}
	x.last = d
	w := s.own[u] + 1e-9
	x.chain.add(s.chain.of[u], d, s.d, w)
	x.segment.add(s.segment.of[u], d, s.d, w)
	x.layer.add(s.layer.of[u], d, s.d, w)
	x.expert.add(s.expert.of[u], d, s.d, w)
	x.block.add(s.block.of[u], d, s.d, w)
}

func (r *relatives) add(k, d int32, devices int, w float64) {
	r.on[int(k)*devices+int(d)] += w
	r.sum[k] += w
	r.last[k] = d
}

// run schedules node v on its unit's device.
func (x *state) run(v graph.OpID) {
	d := int(x.device[x.s.unit[v]])
	ready := x.readyAt(v, d, true)
	w := x.s.seconds[d][v]
	start := x.devices[d].earliest(ready, w)
	x.devices[d].book(start, w)
	x.finish[v] = start + w
	x.clock = max(x.clock, x.finish[v])
}

// readyAt returns when node v's operands are on device d. With commit it sends
// what is not there.
func (x *state) readyAt(v graph.OpID, d int, commit bool) (at float64) {
	s := x.s
	g := s.nodes.Graph
	for _, t := range g.Inputs(v) {
		y := g.Tensor(t)
		from := int(x.device[s.unit[y.Producer]])
		if from == none {
			continue
		}
		made := x.finish[y.Producer]
		if from != d {
			made = x.arrival.When(t, y.Bytes, from, made, d, commit)
		}
		at = max(at, made)
	}
	for _, q := range g.Control(v) {
		at = max(at, x.finish[q])
	}
	return at
}

// allowed writes whether unit u may go to each device: it must fit if it fits
// anywhere, and of several alike that are still empty the first stands for all.
func (x *state) allowed(u int32, to []bool) {
	any := false
	for d := range to {
		to[d] = x.held[d]+x.s.resided[u] <= x.s.memory[d]
		any = any || to[d]
	}
	if !any {
		emptiest := 0
		for d := range to {
			if x.held[d] < x.held[emptiest] {
				emptiest = d
			}
		}
		to[emptiest] = true
		return
	}
	if !x.s.uniform || x.drafted {
		return
	}
	fresh := false
	for d := range to {
		if x.number[d] == none {
			if fresh {
				to[d] = false
			}
			fresh = true
		}
	}
}

func (r *relatives) share(k int32, d, devices int) float32 {
	if r.sum[k] == 0 {
		return 0
	}
	return float32(r.on[int(k)*devices+d] / r.sum[k])
}
