package sim

import (
	"math"
	"slices"

	"placer/graph"
	"placer/hw"
)

// oracle is a second simulator, written from the rules in doc.go with maps and
// no regard for speed. It shares no code with the first.
type oracle struct {
	g        *graph.Graph
	m        *hw.Machine
	cost     CostModel
	device   []uint8
	priority []int32

	start, end map[graph.OpID]float64
	readyAt    map[graph.OpID]float64
	done       map[graph.OpID]bool
	running    map[int]graph.OpID  // by device
	present    map[delivery]bool   // what has arrived where
	linkFree   map[int32]float64   // when a link is next free
	pending    []oracleTransfer    // under way or waiting
	all        []oracleTransfer    // every transfer, in order of reservation
	deltas     map[int][]byteDelta // by device

	fair bool    // links are shared, not queued for
	last float64 // instant of the latest sharing
}

// delivery is a tensor, or the word that an op has ended, on a device.
type delivery struct {
	tensor  graph.TensorID // none for a control message
	control graph.OpID     // none for a tensor
	device  int
}

type oracleTransfer struct {
	what              delivery
	src               int
	ready, start, end float64
	bytes             int64

	// Under fair sharing.
	flows      float64 // when the latency is over
	left, rate float64 // of the bytes
}

type byteDelta struct {
	at    float64
	bytes int64
}

type oracleResult struct {
	makespan  float64
	start     []float64
	peak      []int64
	transfers []oracleTransfer
}

func runOracle(g *graph.Graph, m *hw.Machine, cost CostModel, device []uint8, priority []int32, fair bool) oracleResult {
	o := &oracle{
		g: g, m: m, cost: cost, device: device, priority: priority, fair: fair,
		start: map[graph.OpID]float64{}, end: map[graph.OpID]float64{}, readyAt: map[graph.OpID]float64{},
		done: map[graph.OpID]bool{}, running: map[int]graph.OpID{}, present: map[delivery]bool{},
		linkFree: map[int32]float64{}, deltas: map[int][]byteDelta{},
	}
	for now := 0.0; !math.IsInf(now, 1); now = o.nextInstant(now) {
		o.instant(now)
		if fair {
			o.share(now)
		}
	}
	o.countMemory()
	r := oracleResult{transfers: o.all}
	for i := range g.NumOps() {
		r.start = append(r.start, o.start[graph.OpID(i)])
		r.makespan = max(r.makespan, o.end[graph.OpID(i)])
	}
	for d := range m.NumDevices() {
		r.peak = append(r.peak, peakOf(o.deltas[d]))
	}
	return r
}

func (o *oracle) instant(now float64) {
	// Everything that ends now takes effect.
	var ended []graph.OpID
	for i := range o.g.NumOps() {
		id := graph.OpID(i)
		if _, started := o.start[id]; started && !o.done[id] && o.end[id] == now {
			o.done[id] = true
			delete(o.running, int(o.device[id]))
			ended = append(ended, id)
		}
	}
	o.pending = slices.DeleteFunc(o.pending, func(x oracleTransfer) bool {
		if x.end == now {
			o.present[x.what] = true
			for k := range o.all {
				if o.all[k].what == x.what {
					o.all[k].end = now
				}
			}
		}
		return x.end == now
	})
	// Messages leave: ops by id, tensors by id, the control message, destinations.
	for _, id := range ended {
		first, end := o.g.Outputs(id)
		for t := first; t < end; t++ {
			here := int(o.device[id])
			o.present[delivery{t, none, here}] = true
			for _, d := range o.devicesOf(o.g.Consumers(t)) {
				if d != here {
					o.send(delivery{t, none, d}, here, int64(o.g.Tensor(t).Bytes), now)
				}
			}
		}
		o.present[delivery{none, id, int(o.device[id])}] = true
		for _, d := range o.devicesOf(o.waiters(id)) {
			if d != int(o.device[id]) {
				o.send(delivery{none, id, d}, int(o.device[id]), 0, now)
			}
		}
	}
	// Ops become ready.
	for i := range o.g.NumOps() {
		id := graph.OpID(i)
		if _, known := o.readyAt[id]; !known && o.isReady(id) {
			o.readyAt[id] = now
		}
	}
	// Idle devices choose.
	for d := range o.m.NumDevices() {
		if _, busy := o.running[d]; busy {
			continue
		}
		best := graph.OpID(none)
		for i := range o.g.NumOps() {
			id := graph.OpID(i)
			_, ready := o.readyAt[id]
			_, started := o.start[id]
			if ready && !started && int(o.device[id]) == d && (best == none || o.before(id, best)) {
				best = id
			}
		}
		if best != none {
			o.running[d] = best
			o.start[best] = now
			o.end[best] = now + float64(o.cost.OpSeconds(best, d))
		}
	}
}

func (o *oracle) before(a, b graph.OpID) bool {
	if o.priority != nil {
		return o.priority[a] < o.priority[b]
	}
	return o.readyAt[a] < o.readyAt[b] || o.readyAt[a] == o.readyAt[b] && a < b
}

func (o *oracle) nextInstant(now float64) float64 {
	next := math.Inf(1)
	for _, id := range o.running {
		next = min(next, o.end[id])
	}
	for _, x := range o.pending {
		next = min(next, x.end)
		if o.fair && x.flows > now {
			next = min(next, x.flows)
		}
	}
	return next
}

func (o *oracle) isReady(id graph.OpID) bool {
	d := int(o.device[id])
	for _, t := range o.g.Inputs(id) {
		if !o.present[delivery{t, none, d}] {
			return false
		}
	}
	for _, c := range o.g.Control(id) {
		if !o.present[delivery{none, c, d}] {
			return false
		}
	}
	return true
}

func (o *oracle) waiters(id graph.OpID) (w []graph.OpID) {
	for i := range o.g.NumOps() {
		if slices.Contains(o.g.Control(graph.OpID(i)), id) {
			w = append(w, graph.OpID(i))
		}
	}
	return w
}

func (o *oracle) devicesOf(ops []graph.OpID) (ds []int) {
	for _, i := range ops {
		ds = append(ds, int(o.device[i]))
	}
	slices.Sort(ds)
	return slices.Compact(ds)
}

func (o *oracle) send(what delivery, src int, bytes int64, now float64) {
	start := now
	for _, l := range o.m.Route(src, what.device) {
		start = max(start, o.linkFree[l])
	}
	latency, bandwidth := 0.0, math.Inf(1)
	for _, l := range o.m.Route(src, what.device) {
		latency += float64(o.m.Links[l].Latency)
		bandwidth = min(bandwidth, float64(o.m.Links[l].Bandwidth))
	}
	end := start + (latency + float64(bytes)/bandwidth)
	for _, l := range o.m.Route(src, what.device) {
		o.linkFree[l] = end
	}
	x := oracleTransfer{what: what, src: src, ready: now, start: start, end: end, bytes: bytes}
	if o.fair {
		x.start, x.flows, x.left = now, now+latency, float64(bytes)
	}
	o.pending = append(o.pending, x)
	o.all = append(o.all, x)
}

// share raises the rates of all flows together until a link is full, which stops
// the flows over that link, and predicts every end if nothing changes.
func (o *oracle) share(now float64) {
	used := map[int32]float64{}
	growing := map[int]bool{}
	for k := range o.pending {
		x := &o.pending[k]
		x.left = max(0, x.left-x.rate*(now-o.last))
		x.rate = 0
		x.end = math.Inf(1)
		switch {
		case x.bytes == 0:
			x.end = x.flows
		case x.flows <= now:
			growing[k] = true
		}
	}
	o.last = now
	for len(growing) > 0 {
		count := map[int32]float64{}
		for k := range growing {
			for _, l := range o.m.Route(o.pending[k].src, o.pending[k].what.device) {
				count[l]++
			}
		}
		raise := math.Inf(1)
		for l, n := range count {
			raise = min(raise, (float64(o.m.Links[l].Bandwidth)-used[l])/n)
		}
		for l, n := range count {
			used[l] += raise * n
		}
		for k := range growing {
			o.pending[k].rate += raise
		}
		for k := range growing {
			for _, l := range o.m.Route(o.pending[k].src, o.pending[k].what.device) {
				if used[l] >= float64(o.m.Links[l].Bandwidth)*(1-1e-12) {
					delete(growing, k)
				}
			}
		}
	}
	for k := range o.pending {
		if x := &o.pending[k]; x.rate > 0 {
			x.end = now + x.left/x.rate
		}
	}
}

func (o *oracle) countMemory() {
	hold := func(d int, from, to float64, bytes int64) {
		o.deltas[d] = append(o.deltas[d], byteDelta{from, bytes}, byteDelta{to, -bytes})
	}
	lastUse := func(t graph.TensorID, d int) (last float64) {
		for _, v := range o.g.Consumers(t) {
			if int(o.device[v]) == d {
				last = max(last, o.end[v])
			}
		}
		return last
	}
	for i := range o.g.NumOps() {
		id := graph.OpID(i)
		op, d := o.g.Op(id), int(o.device[i])
		hold(d, 0, math.Inf(1), int64(op.Resident))
		hold(d, o.start[id], o.end[id], int64(op.Workspace))
		first, end := o.g.Outputs(id)
		for t := first; t < end; t++ {
			if o.g.Tensor(t).Resident {
				continue
			}
			last := max(o.end[id], lastUse(t, d))
			for _, x := range o.all {
				if x.what.tensor == t {
					last = max(last, x.end)
				}
			}
			hold(d, o.start[id], last, int64(o.g.Tensor(t).Bytes))
		}
	}
	for _, x := range o.all {
		if t := x.what.tensor; t != none {
			hold(x.what.device, x.start, lastUse(t, x.what.device), x.bytes)
		}
	}
}

// peakOf sums changes in order of time, frees first.
func peakOf(deltas []byteDelta) (peak int64) {
	slices.SortFunc(deltas, func(a, b byteDelta) int {
		switch {
		case a.at < b.at || a.at == b.at && a.bytes < b.bytes:
			return -1
		case a.at > b.at || a.at == b.at && a.bytes > b.bytes:
			return 1
		}
		return 0
	})
	bytes := int64(0)
	for _, x := range deltas {
		bytes += x.bytes
		peak = max(peak, bytes)
	}
	return peak
}
