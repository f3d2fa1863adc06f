package sequential

import (
	"math"
	"slices"

	"placer/graph"
	"placer/schedule"
	"placer/units"
)

// state is a rollout under way: what a list scheduler would have done so far with
// the units decided. Times are those of the coarsened graph and know nothing of the
// simulator's.
type state struct {
	s       *instance
	prior   heuristic
	device  []int32             // [U], or none
	finish  []float64           // [V]
	devices []schedule.Timeline // [D]
	load    []float64           // [D] work of the units decided
	held    []units.Bytes
	arrival *schedule.Arrivals
	number  []int32 // [D] how many devices were used before; none if not used
	used    int32
	last    int32 // device of the last decision
	clock   float64
	decided [numGroupings]groupState

	refining  bool      // previous is known
	previous  []int32   // [U] device in the placement being refined
	pending   []float64 // [D] work that it gives to units not decided yet
	ungrouped bool      // nobody reads decided, so it is not kept
	best      []int32   // [U] the placement, of all refinements, whose schedule ends soonest
	soonest   float64   // when it ends

	// Scratch, [D], and facts of a decision.
	expected, ready, start, contact, cost []float64
	facts                                 deviceFacts
}

// mostGaps bounds the gaps of a device that a rollout remembers: its memory, and the
// time to look through them.
const mostGaps = 24

// groupState is what is known of the groups of one kind from their units decided.
type groupState struct {
	on   []float64 // [groups*D] seconds
	sum  []float64 // [groups]
	last []int32   // [groups] device of the last one decided, or none
}

func newState(s *instance) *state {
	n, g := s.part.NumUnits(), s.nodes.Graph
	x := &state{
		s: s, device: make([]int32, n), finish: make([]float64, g.NumOps()), devices: make([]schedule.Timeline, s.d),
		held: make([]units.Bytes, s.d), arrival: schedule.NewArrivals(s.problem.Machine, g.NumTensors()),
		number: make([]int32, s.d), previous: make([]int32, n), best: make([]int32, n),
	}
	for _, v := range []*[]float64{&x.load, &x.pending, &x.expected, &x.ready, &x.start, &x.contact, &x.cost} {
		*v = make([]float64, s.d)
	}
	for d := range x.devices {
		x.devices[d].MostGaps = mostGaps
	}
	for k := range x.decided {
		n := len(s.groups[k].seconds)
		x.decided[k] = groupState{make([]float64, n*s.d), make([]float64, n), make([]int32, n)}
	}
	return x
}

// reset begins a rollout under a heuristic prior.
func (x *state) reset(prior heuristic) {
	x.prior, x.refining, x.soonest = prior, false, math.Inf(1)
	clear(x.pending)
	x.restart()
}

// refine begins anew in knowledge of what was decided.
func (x *state) refine() {
	x.refining = true
	copy(x.previous, x.device)
	copy(x.pending, x.load)
	x.restart()
}

// before returns the device of unit u in the placement being refined, or none.
func (x *state) before(u int32) int32 {
	if x.refining {
		return x.previous[u]
	}
	return none
}

// unchanged tells whether a refinement left all decisions as they were.
func (x *state) unchanged() bool { return x.refining && slices.Equal(x.device, x.previous) }

// keep notes the placement if its schedule ends sooner than all before.
func (x *state) keep() {
	if x.clock < x.soonest {
		x.soonest = x.clock
		copy(x.best, x.device)
	}
}

// restart forgets all decisions.
func (x *state) restart() {
	fill(x.device)
	fill(x.number)
	clear(x.finish)
	for d := range x.devices {
		x.devices[d].Reset()
	}
	clear(x.load)
	clear(x.held)
	x.arrival.Reset()
	x.used, x.last, x.clock = 0, none, 0
	for k := range x.decided {
		clear(x.decided[k].on)
		clear(x.decided[k].sum)
		fill(x.decided[k].last)
	}
}

// decide puts unit u on device d.
func (x *state) decide(u, d int32) {
	s := x.s
	x.device[u] = d
	x.load[d] += s.work[d][u]
	if x.refining {
		was := x.previous[u]
		x.pending[was] -= s.work[was][u]
	}
	x.held[d] += s.resident[u]
	if x.number[d] == none {
		x.number[d] = x.used
		x.used++
	}
	x.last = d
	if x.ungrouped {
		return
	}
	w := s.own[u] + 1e-9
	for i := range x.decided {
		r, k := &x.decided[i], s.groups[i].of[u]
		r.on[int(k)*s.d+int(d)] += w
		r.sum[k] += w
		r.last[k] = d
	}
}

// run schedules node v on its unit's device.
func (x *state) run(v graph.OpID) {
	d := int(x.device[x.s.unit[v]])
	w := x.s.seconds[d][v]
	start := x.devices[d].Earliest(x.arrival.Ready(x.s.nodes.Graph, v, x.s.unit, x.device, x.finish, d, true), w)
	x.devices[d].Take(start, w)
	x.finish[v] = start + w
	x.clock = max(x.clock, x.finish[v])
}

// arrivals finds out when node v's operands would be on each device, ready.
func (x *state) arrivals(v graph.OpID) {
	x.arrival.ReadyEverywhere(x.s.nodes.Graph, v, x.s.unit, x.device, x.finish, x.ready)
}

// fits reports whether device d has room for unit u.
func (x *state) fits(u int32, d int) bool { return x.held[d]+x.s.resident[u] <= x.s.memory[d] }

// allowed writes whether unit u may go to each device: it must fit if it fits
// anywhere, and of several alike that are still empty the first stands for all.
func (x *state) allowed(u int32, to []bool) {
	for d := range to {
		to[d] = x.fits(u, d)
	}
	if !slices.Contains(to, true) {
		to[slices.Index(x.held, slices.Min(x.held))] = true
		return
	}
	if !x.s.uniform || x.refining {
		return
	}
	if first := slices.Index(x.number, none); first >= 0 {
		for d := first + 1; d < len(to); d++ {
			to[d] = to[d] && x.number[d] != none
		}
	}
}

// place writes the device of every op, [N], under decisions, [U].
func (s *instance) place(decisions []int32, device []uint8) {
	for i, u := range s.part.Of {
		device[i] = uint8(decisions[u])
	}
}

// scheduled returns when the own schedule of a placement, [N], ends, in seconds: each unit
// is where its first op is.
func (x *state) scheduled(device []uint8) float64 {
	x.reset(heuristic{})
	for u, ops := range x.s.part.Ops {
		x.device[u] = int32(device[ops[0]])
	}
	for _, step := range x.s.steps {
		if step.unit == none {
			x.run(step.node)
		}
	}
	return x.clock
}
