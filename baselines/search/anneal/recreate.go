package anneal

import (
	"math"
	"math/rand/v2"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

const none = -1

// listing is what list scheduling knows of a neighbourhood's decisions: the nodes of the
// coarsened graph, in the order in which they are scheduled. It is shared by replicas and
// does not change. Letters: V nodes, U decisions, D devices.
type listing struct {
	machine  *hw.Machine
	g        *graph.Graph // coarsened
	unit     []int32      // [V] decision
	source   []bool       // [V] holds variables and waits for nothing
	order    []graph.OpID // [V] by falling rank
	seconds  [][]float64  // [D][V]
	work     [][]float64  // [D][U]
	resident []units.Bytes
	weights  []bool // [U] holds weights
	// transfer is what each decision exchanges with those near, in seconds, [U].
	transfer [][]float64
}

// newListing coarsens p to the decisions of t.
func newListing(p *plan.Problem, t *neighbourhood) (*listing, error) {
	c, seconds, err := schedule.Coarsen(p, t.fine)
	if err != nil {
		return nil, err
	}
	n, u := c.Graph.NumOps(), len(t.seconds)
	l := &listing{
		machine: p.Machine, g: c.Graph, unit: make([]int32, n), source: make([]bool, n), seconds: seconds,
		resident: make([]units.Bytes, u), weights: make([]bool, u), transfer: make([][]float64, u),
	}
	for _, w := range t.weights {
		l.weights[w] = true
	}
	for v := range l.unit {
		id := graph.OpID(v)
		l.unit[v] = c.Unit(id)
		l.source[v] = l.weights[l.unit[v]] && len(c.Graph.Inputs(id))+len(c.Graph.Control(id)) == 0
		l.resident[l.unit[v]] += c.Graph.Op(id).Resident
	}
	for _, column := range seconds {
		w := make([]float64, u)
		for v, x := range column {
			w[l.unit[v]] += x
		}
		l.work = append(l.work, w)
	}
	for k := range l.transfer {
		_, bytes := t.near.Neighbours(int32(k))
		l.transfer[k] = make([]float64, len(bytes))
		for i, b := range bytes {
			l.transfer[k][i] = float64(p.Machine.TransferSeconds(0, min(1, p.Machine.NumDevices()-1), units.Bytes(b)))
		}
	}
	l.order = schedule.ByRank(c.Graph, schedule.MeanRank(c.Graph, p.Machine, seconds))
	return l, nil
}

// recreation decides some units anew by list scheduling, where all others stay: ruin and
// recreate (Schrimpf et al., J. Comput. Phys. 159, 2000), a large neighbourhood (Shaw,
// CP 1998). One move at a time never leaves a placement where a unit is as good as it can
// be beside the others; here what reads a unit that moved follows it.
type recreation struct {
	*listing
	ruined   []int32             // decisions
	at       []int32             // [U] device, or none while ruined
	finish   []float64           // [V]
	devices  []schedule.Timeline // [D]
	load     []float64           // [D] work of the decisions made
	held     []units.Bytes       // [D]
	arrival  *schedule.Arrivals
	contact  []float64 // [D] scratch
	balance  float64   // weight of a device's work against the time at which a unit's first node ends
	exchange float64   // weight of what it exchanges with others
	together bool      // counterparts share a device

	allowance *allowance  // nil: everything is allowed
	used      units.Bytes // of it, as if each decision that is ruined cost its least
}

// mostGaps bounds the gaps of a device that are looked through.
const mostGaps = 24

func newRecreation(l *listing) *recreation {
	d := len(l.seconds)
	x := &recreation{
		listing: l, at: make([]int32, len(l.weights)), finish: make([]float64, len(l.unit)), devices: make([]schedule.Timeline, d), load: make([]float64, d),
		held: make([]units.Bytes, d), arrival: schedule.NewArrivals(l.machine, l.g.NumTensors()), contact: make([]float64, d),
	}
	for d := range x.devices {
		x.devices[d].MostGaps = mostGaps
	}
	return x
}

// Weights of a recreation are drawn from these, as those of list scheduling's rules.
var (
	balances  = [...]float64{0, 0.1, 0.3, 1}
	exchanges = [...]float64{0, 1, 4}
)

// recreate ruins some decisions and makes them anew.
func (w *replica) recreate() {
	x := w.recreation
	w.drawWeights()
	x.reset(w.now)
	w.ruin()
	w.list()
	for _, u := range x.ruined {
		w.set(u, uint8(x.at[u]))
	}
}

func (w *replica) drawWeights() {
	x := w.recreation
	x.balance, x.exchange = balances[w.rng.IntN(len(balances))], exchanges[w.rng.IntN(len(exchanges))]
	x.together = w.rng.IntN(4) > 0
}

// list decides what is ruined by list scheduling.
func (w *replica) list() {
	x := w.recreation
	for _, v := range x.order {
		u := x.unit[v]
		if x.at[u] == none {
			if x.source[v] {
				continue // ready everywhere until somebody decides
			}
			x.decide(u, w.choose(u, v))
		}
		x.run(v)
	}
	for _, u := range x.ruined {
		if x.at[u] == none {
			x.decide(u, w.choose(u, none))
		}
	}
}

// listed returns n placements, [N] each, that list scheduling makes of nothing under
// weights drawn at random.
func (r *run) listed(n int) (out [][]uint8, err error) {
	l, err := r.Shared.listingOf(r.p)
	if err != nil {
		return nil, err
	}
	w := newReplica(r.cells, nil, r.p.Machine.NumDevices(), rand.NewPCG(r.p.Seed, 98))
	w.recreation = newRecreation(l)
	x := w.recreation
	for range n {
		w.drawWeights()
		x.reset(w.now)
		for u := range w.now {
			w.spoil(int32(u))
		}
		w.list()
		device := make([]uint8, r.p.Graph.NumOps())
		for u, ops := range r.cells.fine.Ops {
			for _, i := range ops {
				device[i] = uint8(x.at[u])
			}
		}
		out = append(out, device)
	}
	return out, nil
}

// ruin chooses decisions to be made anew: a stretch of the forward pass, what is near a
// decision, a group, or some anywhere; with their counterparts, partial gradients and
// mostly the weights that they read.
func (w *replica) ruin() {
	most := max(2, len(w.now)/8)
	n := 1 + int(math.Pow(float64(most), w.rng.Float64()))
	weights := w.rng.IntN(4) > 0
	take := func(u int32) {
		w.spoil(u)
		if p := w.counterpart[u]; p >= 0 {
			w.spoil(p)
		}
		for _, v := range w.partial[u] {
			w.spoil(v)
		}
		if weights {
			for _, v := range w.own[u] {
				w.spoil(v)
			}
		}
	}
	switch x := w.recreation; w.rng.IntN(4) {
	case 0:
		if len(w.line) > 0 {
			a := w.rng.IntN(len(w.line))
			for _, u := range w.line[a:min(len(w.line), a+n)] {
				take(u)
			}
		}
	case 1:
		take(int32(w.rng.IntN(len(w.now))))
		for k := 0; k < len(x.ruined) && len(x.ruined) < n; k++ {
			near, _ := w.near.Neighbours(x.ruined[k])
			for _, v := range near {
				take(v)
			}
		}
	case 2:
		g, _, _ := w.pickRun(whole)
		for _, u := range g {
			take(u)
		}
	default:
		for range n {
			take(int32(w.rng.IntN(len(w.now))))
		}
	}
}

// spoil takes decision u back, unless it could be decided for nothing else.
func (w *replica) spoil(u int32) {
	x := w.recreation
	d := x.at[u]
	if d == none || x.allowance.binds(u, uint8(d), x.used) {
		return
	}
	x.used -= x.allowance.beyond(u, uint8(d))
	x.at[u] = none
	x.load[d] -= x.work[d][u]
	x.held[d] -= x.resident[u]
	x.ruined = append(x.ruined, u)
}

// reset begins with the decisions now, none of them ruined.
func (x *recreation) reset(now []uint8) {
	x.ruined = x.ruined[:0]
	x.used = x.allowance.spend(now)
	clear(x.load)
	clear(x.held)
	for u, d := range now {
		x.at[u] = int32(d)
		x.load[d] += x.work[d][u]
		x.held[d] += x.resident[u]
	}
	clear(x.finish)
	for d := range x.devices {
		x.devices[d].Reset()
	}
	x.arrival.Reset()
}

// decide puts u on device d.
func (x *recreation) decide(u, d int32) {
	x.at[u] = d
	x.used += x.allowance.beyond(u, uint8(d))
	x.load[d] += x.work[d][u]
	x.held[d] += x.resident[u]
}

// run schedules node v, whose decision is made.
func (x *recreation) run(v graph.OpID) {
	d := int(x.at[x.unit[v]])
	length := x.seconds[d][v]
	start := x.devices[d].Earliest(x.ready(v, d, true), length)
	x.devices[d].Take(start, length)
	x.finish[v] = start + length
}

// ready returns when the operands of node v are on device d. With send it sends what is
// not there.
func (x *recreation) ready(v graph.OpID, d int, send bool) float64 {
	return x.arrival.Ready(x.g, v, x.unit, x.at, x.finish, d, send)
}

// blinks is how often, one in so many, a device is overlooked, so that one ruin is
// recreated in several ways (Christiaens and Vanden Berghe, Transp. Sci. 54, 2020).
const blinks = 16

// choose returns the device of u, whose node v comes first, or none of which is run.
func (w *replica) choose(u int32, v graph.OpID) int32 {
	x := w.recreation
	if p := w.counterpart[u]; x.together && p >= 0 && x.at[p] != none {
		return x.at[p]
	}
	clear(x.contact)
	near, _ := w.near.Neighbours(u)
	for k, q := range near {
		if d := x.at[q]; d != none {
			x.contact[d] += x.transfer[u][k]
		}
	}
	best, least := int32(none), math.Inf(1)
	for d := range x.contact {
		if x.held[d]+x.resident[u] > x.machine.Devices[d].Memory || !x.allowance.affords(u, uint8(d), x.used) || w.rng.IntN(blinks) == 0 {
			continue
		}
		cost := -x.exchange * x.contact[d]
		switch {
		case x.weights[u] || v == none:
			cost = -x.contact[d]
		default:
			length := x.seconds[d][v]
			cost += x.balance*(x.load[d]+x.work[d][u]) + x.devices[d].Earliest(x.ready(v, d, false), length) + length
		}
		if cost < least {
			best, least = int32(d), cost
		}
	}
	if best == none {
		return int32(w.now[u])
	}
	return best
}
