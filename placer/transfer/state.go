package transfer

import (
	"math"
	"slices"

	"placer/graph"
	"placer/units"
)

// state is a sample under way: what a list scheduler would have done so far with
// the units decided. Times are those of the contraction and know nothing of the
// simulator's.
type state struct {
	s       *Scene
	device  []int32   // [U], or none
	finish  []float64 // [V]
	free    []float64 // [D]
	load    []float64 // [D] work of the units decided
	held    []units.Bytes
	links   []float64 // [links] when free
	arrival []float64 // [T*D] 0 while not sent
	number  []int32   // [D] how many devices were used before; none if not used
	used    int32
	last    int32 // device of the last decision
	clock   float64

	chain, segment, layer relatives
	expert, block         relatives
	before                draft     // of the iteration before
	ready                 []float64 // [D] scratch
	contact, mixed        []float64 // [D] scratch
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
		s: s, device: make([]int32, s.part.NumUnits()), finish: make([]float64, g.NumOps()), free: make([]float64, s.d), load: make([]float64, s.d),
		held: make([]units.Bytes, s.d), links: make([]float64, len(s.problem.Machine.Links)), arrival: make([]float64, g.NumTensors()*s.d),
		number: make([]int32, s.d), ready: make([]float64, s.d), contact: make([]float64, s.d), mixed: make([]float64, s.d),
	}
	for _, r := range []struct {
		to *relatives
		g  *grouping
	}{{&x.chain, &s.chain}, {&x.segment, &s.segment}, {&x.layer, &s.layer}, {&x.expert, &s.expert}, {&x.block, &s.block}} {
		n := len(r.g.seconds)
		*r.to = relatives{make([]float64, n*s.d), make([]float64, n), make([]int32, n)}
	}
	n := g.NumOps()
	x.before.started, x.before.ready, x.before.made = make([]float64, n), make([]float64, n), make([]float64, n)
	x.reset()
	return x
}

// reset begins a sample.
func (x *state) reset() {
	x.before.any = false
	x.restart()
}

// restart begins an iteration.
func (x *state) restart() {
	fill := func(a []int32) {
		for i := range a {
			a[i] = none
		}
	}
	fill(x.device)
	fill(x.number)
	clear(x.finish)
	clear(x.free)
	clear(x.load)
	clear(x.held)
	clear(x.links)
	clear(x.arrival)
	x.used, x.last, x.clock = 0, none, 0
	for _, r := range []*relatives{&x.chain, &x.segment, &x.layer, &x.expert, &x.block} {
		clear(r.on)
		clear(r.sum)
		fill(r.last)
	}
}

// draft is what an iteration leaves for the next one to improve on.
type draft struct {
	any     bool
	device  []int32   // [U]
	load    []float64 // [D] of the units that the present iteration has not decided
	start   []float64 // [U] of the unit's first node
	slack   []float64 // [U] from the end of a node to the start of its first reader, the least
	queue   []float64 // [U] from a first node's operands to its start
	wait    []float64 // [U] from the end of what a first node reads to its arrival
	span    float64
	busy    []float64 // [D*bins] share of a stretch of the span
	started []float64 // [V] of the iteration under way
	ready   []float64 // [V]
	made    []float64 // [V] when the last operand was made
}

// bins is the number of stretches of a draft's span.
const bins = 32

// remember makes the placement come to the draft of the next iteration, which
// starts from nothing.
func (x *state) remember() {
	s, b := x.s, &x.before
	g := s.nodes.Graph
	n := s.part.NumUnits()
	if b.device == nil {
		b.device, b.load, b.busy = make([]int32, n), make([]float64, s.d), make([]float64, s.d*bins)
		b.start, b.slack, b.queue, b.wait = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	}
	b.any = true
	copy(b.device, x.device)
	copy(b.load, x.load)
	b.span = max(x.clock, 1e-12)
	clear(b.busy)
	for u := range b.start {
		b.start[u], b.slack[u] = -1, b.span
	}
	width := b.span / bins
	for v := range graph.OpID(g.NumOps()) {
		u := s.nodes.Unit(v)
		d := x.device[u]
		start, end := b.started[v], x.finish[v]
		if b.start[u] < 0 || start < b.start[u] {
			b.start[u], b.queue[u], b.wait[u] = start, start-b.ready[v], b.ready[v]-b.made[v]
		}
		for k := int(start / width); k < bins && float64(k)*width < end; k++ {
			b.busy[int(d)*bins+k] += (min(end, float64(k+1)*width) - max(start, float64(k)*width)) / width
		}
		for _, t := range g.Inputs(v) {
			q := g.Tensor(t).Producer
			if w := s.nodes.Unit(q); w != u {
				b.slack[w] = min(b.slack[w], start-x.finish[q])
			}
		}
	}
	x.restart()
}

// decide puts unit u on device d.
func (x *state) decide(u, d int32) {
	s := x.s
	x.device[u] = d
	x.load[d] += s.work[d][u]
	if x.before.any {
		e := x.before.device[u]
		x.before.load[e] -= s.work[e][u]
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
	d := int(x.device[x.s.nodes.Unit(v)])
	ready := x.readyAt(v, d, true)
	start := max(x.free[d], ready)
	x.before.started[v], x.before.ready[v], x.before.made[v] = start, ready, 0
	for _, t := range x.s.nodes.Graph.Inputs(v) {
		x.before.made[v] = max(x.before.made[v], x.finish[x.s.nodes.Graph.Tensor(t).Producer])
	}
	x.finish[v] = start + x.s.seconds[d][v]
	x.free[d] = x.finish[v]
	x.clock = max(x.clock, x.finish[v])
}

// readyAt returns when node v's operands are on device d. With commit it sends
// what is not there.
func (x *state) readyAt(v graph.OpID, d int, commit bool) (at float64) {
	s := x.s
	g, m := s.nodes.Graph, s.problem.Machine
	for _, t := range g.Inputs(v) {
		y := g.Tensor(t)
		from := int(x.device[s.nodes.Unit(y.Producer)])
		if from == none {
			continue
		}
		if from == d {
			at = max(at, x.finish[y.Producer])
			continue
		}
		k := int(t)*s.d + d
		if a := x.arrival[k]; a > 0 {
			at = max(at, a)
			continue
		}
		start := x.finish[y.Producer]
		route := m.Route(from, d)
		for _, l := range route {
			start = max(start, x.links[l])
		}
		end := start + float64(m.TransferSeconds(from, d, y.Bytes))
		at = max(at, end)
		if commit {
			x.arrival[k] = end
			for _, l := range route {
				x.links[l] = end
			}
		}
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
	if !x.s.uniform || x.before.any {
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

// dynamicNames are the columns of a unit on a device, given what is decided.
var dynamicNames = []string{
	"start_of_unit", "start_of_mean", "idle_of_unit", "idle_of_mean", "free_of_mean", "load_over_least", "load", "load_after",
	"sent_of_unit", "sent_of_mean", "contact_of_unit", "contact_of_mean", "contact_share",
	"partner", "no_partner", "chain_last", "chain_share", "segment_last", "segment_share", "layer_last", "layer_share", "expert_last", "expert_share", "expert_new", "block_last", "block_share", "block_new",
	"held", "fits", "fresh", "last", "pipeline", "in_block", "earliest", "least_loaded", "used",
	"draft", "draft_here", "draft_contact_share", "draft_apart_of_unit", "draft_apart_of_mean", "draft_load", "draft_load_over_least", "draft_busy", "draft_busy_before", "draft_busy_after",
	"draft_slack", "draft_queue", "draft_wait", "draft_idle", "draft_least",
}

var numDynamic = len(dynamicNames)

// numPlain columns come before those that know a draft.
var numPlain = slices.Index(dynamicNames, "draft")

// columns writes the dynamic columns of unit u, whose node v is next, for every
// device, [D, numDynamic].
func (x *state) columns(u int32, v graph.OpID, to []float32) {
	s := x.s
	if s.nodes.Unit(v) != u { // a variable, read by v: what is ready is the reader
		v = none
	}
	own, mean := s.own[u]+1e-7, s.mean
	decided := 0.0
	clear(x.contact)
	for _, c := range s.near[u] {
		if d := x.device[c.unit]; d != none {
			x.contact[d] += c.seconds
			decided += c.seconds
		}
	}
	least, lightest, freest := math.Inf(1), math.Inf(1), math.Inf(1)
	for d := range s.d {
		x.ready[d] = 0
		if v != none {
			x.ready[d] = x.readyAt(v, d, false)
		}
		least = min(least, max(x.free[d], x.ready[d]))
		lightest, freest = min(lightest, x.load[d]), min(freest, x.free[d])
	}
	readiest := math.Inf(1)
	for d := range s.d {
		readiest = min(readiest, x.ready[d])
	}
	done := 0.0
	for d := range s.d {
		done += x.load[d]
	}
	partner := int32(none)
	if p := s.partner[u]; p != none {
		partner = x.device[p]
	}
	b := func(y bool) float32 {
		if y {
			return 1
		}
		return 0
	}
	z := &x.before
	var all, lightestDraft float64
	if z.any {
		clear(x.mixed)
		for _, c := range s.near[u] {
			d := x.device[c.unit]
			if d == none {
				d = z.device[c.unit]
			}
			x.mixed[d] += c.seconds
			all += c.seconds
		}
		z.load[z.device[u]] -= s.work[z.device[u]][u] // it is being decided
		lightestDraft = math.Inf(1)
		for d := range s.d {
			lightestDraft = min(lightestDraft, x.load[d]+z.load[d])
		}
		defer func() { z.load[z.device[u]] += s.work[z.device[u]][u] }()
	}
	chain, segment, layer := s.chain.of[u], s.segment.of[u], s.layer.of[u]
	expert, blk := s.expert.of[u], s.block.of[u]
	block := min(float64(s.d-1), math.Floor((done+s.own[u]/2)/mean))
	for d := range s.d {
		start := max(x.free[d], x.ready[d])
		apart := decided - x.contact[d]
		share := 0.0
		if decided > 0 {
			share = x.contact[d] / decided
		}
		number := x.number[d]
		if number == none {
			number = x.used
		}
		row := to[d*numDynamic : (d+1)*numDynamic]
		copy(row, []float32{
			squash((start - least) / own), squash(8 * (start - least) / mean), squash((x.ready[d] - x.free[d]) / own), squash(8 * (x.ready[d] - x.free[d]) / mean),
			squash(8 * (x.free[d] - freest) / mean), squash(8 * (x.load[d] - lightest) / mean), squash(2 * x.load[d] / mean), squash(4 * (x.load[d] + s.work[d][u] - mean) / mean),
			squash((x.ready[d] - readiest) / own), squash(8 * (x.ready[d] - readiest) / mean), squash(apart / own), squash(8 * apart / mean), float32(share),
			b(partner == int32(d)), b(partner == none), b(x.chain.last[chain] == int32(d)), x.chain.share(chain, d, s.d), b(x.segment.last[segment] == int32(d)), x.segment.share(segment, d, s.d),
			b(x.layer.last[layer] == int32(d)), x.layer.share(layer, d, s.d),
			b(x.expert.last[expert] == int32(d)), x.expert.share(expert, d, s.d), b(x.expert.last[expert] == none), b(x.block.last[blk] == int32(d)), x.block.share(blk, d, s.d), b(x.block.last[blk] == none),
			float32(float64(x.held[d]) / float64(s.memory[d])), b(x.held[d]+s.resided[u] <= s.memory[d]), b(x.number[d] == none), b(x.last == int32(d)),
			float32((float64(number)+0.5)/float64(s.d) - (done+s.own[u]/2)/s.total), b(float64(number) == block), b(start <= least), b(x.load[d] <= lightest),
			float32(float64(x.used) / float64(s.d)),
		})
		rest := row[numPlain:]
		if !z.any {
			clear(rest)
			continue
		}
		at := min(bins-1, int(z.start[u]/z.span*bins))
		end := min(bins-1, int((z.start[u]+s.own[u])/z.span*bins))
		busy := func(lo, hi int) float32 {
			lo, hi = max(lo, 0), min(hi, bins-1)
			sum := 0.0
			for k := lo; k <= hi; k++ {
				sum += z.busy[d*bins+k]
			}
			return float32(sum / float64(max(1, hi-lo+1)))
		}
		alone := 0.0
		if all > 0 {
			alone = x.mixed[d] / all
		}
		load := x.load[d] + z.load[d]
		copy(rest, []float32{
			1, b(z.device[u] == int32(d)), float32(alone), squash((all - x.mixed[d]) / own), squash(8 * (all - x.mixed[d]) / mean),
			squash(4 * (load + s.work[d][u] - mean) / mean), squash(8 * (load - lightestDraft) / mean), busy(at, end), busy(at-3, at-1), busy(end+1, end+3),
			squash(8 * z.slack[u] / mean), squash(8 * z.queue[u] / mean), squash(8 * z.wait[u] / mean), float32(1 - (load / z.span)), b(load <= lightestDraft),
		})
	}
}

func (r *relatives) share(k int32, d, devices int) float32 {
	if r.sum[k] == 0 {
		return 0
	}
	return float32(r.on[int(k)*devices+d] / r.sum[k])
}
