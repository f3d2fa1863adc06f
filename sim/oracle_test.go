package sim

import (
	"math"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/units"
)

// oracle is a second simulator, written from the rules in doc.go with maps and
// no regard for speed. It shares no code with the first.
type oracle struct {
	g        *graph.Graph
	m        *hw.Machine
	cost     CostModel
	device   []uint8
	priority []int32
	kernel   []graph.OpID // lowest op of each op's kernel
	role     []graph.FuseRole

	// By kernel, which goes by its lowest op.
	start, end map[graph.OpID]float64
	readyAt    map[graph.OpID]float64
	done       map[graph.OpID]bool
	running    map[int]graph.OpID  // by device
	present    map[delivery]bool   // what has arrived where
	linkFree   map[int32]float64   // when a link is next free
	pending    []oracleTransfer    // under way or waiting
	all        []oracleTransfer    // every transfer, in order of reservation
	deltas     map[int][]byteDelta // by device

	fair  bool    // links are shared, not queued for
	alone bool    // links are free for everyone
	last  float64 // instant of the latest sharing

	sender  bool              // copies occupy the sender
	copying map[int]float64   // when a device's copies are made
	read    map[delivery]bool // what an op on the device has read
	longer  map[graph.OpID]float64
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
	longer    []float64 // what the kernel of an op reads first
	peak      []int64
	transfers []oracleTransfer
}

func runOracle(g *graph.Graph, m *hw.Machine, cost CostModel, device []uint8, priority []int32, contention Contention) oracleResult {
	return runOracleFused(g, m, cost, device, priority, nil, contention)
}

// runOracleFused takes one op for all ops of a kernel, [N], or nil.
func runOracleFused(g *graph.Graph, m *hw.Machine, cost CostModel, device []uint8, priority []int32, head []int32, contention Contention) oracleResult {
	kernel := make([]graph.OpID, g.NumOps())
	for i := range kernel {
		kernel[i] = graph.OpID(i)
		if head != nil {
			kernel[i] = graph.OpID(slices.Index(head, head[i]))
		}
	}
	fair := contention == FairShare
	o := &oracle{kernel: kernel, role: fuse.Roles(g),
		g: g, m: m, cost: cost, device: device, priority: priority, fair: fair, alone: contention == Uncontended,
		start: map[graph.OpID]float64{}, end: map[graph.OpID]float64{}, readyAt: map[graph.OpID]float64{},
		done: map[graph.OpID]bool{}, running: map[int]graph.OpID{}, present: map[delivery]bool{},
		linkFree: map[int32]float64{}, deltas: map[int][]byteDelta{},
		sender: m.OccupiesSender(), copying: map[int]float64{}, read: map[delivery]bool{}, longer: map[graph.OpID]float64{},
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
		r.start = append(r.start, o.start[o.kernel[i]])
		r.longer = append(r.longer, o.longer[o.kernel[i]])
		r.makespan = max(r.makespan, o.end[o.kernel[i]])
	}
	for d := range m.NumDevices() {
		r.peak = append(r.peak, peakOf(o.deltas[d]))
	}
	return r
}

func (o *oracle) instant(now float64) {
	// Everything that ends now takes effect.
	var ended []graph.OpID
	for _, id := range o.kernels() {
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
				if o.all[k].what == x.what && !o.sender {
					o.all[k].end = now
				}
			}
		}
		return x.end == now
	})
	// Messages leave: kernels by id, tensors by id, the control message,
	// destinations.
	for _, id := range ended {
		here := int(o.device[id])
		var waiters []graph.OpID
		for _, i := range o.members(id) {
			first, end := o.g.Outputs(i)
			for t := first; t < end; t++ {
				o.present[delivery{t, none, here}] = true
				bytes := int64(o.g.Tensor(t).Bytes)
				if o.kept(t) {
					bytes = 0
				}
				readers := o.devicesOf(o.others(id, o.g.Consumers(t)))
				if o.sender {
					o.copy(t, here, readers, bytes, now)
					continue
				}
				for _, d := range readers {
					if d != here {
						o.send(delivery{t, none, d}, here, bytes, now)
					}
				}
			}
			waiters = append(waiters, o.others(id, o.waiters(i))...)
		}
		o.present[delivery{none, id, here}] = true
		for _, d := range o.devicesOf(waiters) {
			if d != here && !o.sender {
				o.send(delivery{none, id, d}, here, 0, now)
			}
		}
	}
	// Kernels become ready.
	for _, id := range o.kernels() {
		if _, known := o.readyAt[id]; !known && o.isReady(id) {
			o.readyAt[id] = now
		}
	}
	// Idle devices choose.
	for d := range o.m.NumDevices() {
		if _, busy := o.running[d]; busy || o.copying[d] > now {
			continue
		}
		best := graph.OpID(none)
		for _, id := range o.kernels() {
			_, ready := o.readyAt[id]
			_, started := o.start[id]
			if ready && !started && int(o.device[id]) == d && (best == none || o.before(id, best)) {
				best = id
			}
		}
		if best != none {
			o.running[d] = best
			o.start[best] = now
			o.longer[best] = o.receipts(best, d)
			o.end[best] = now + (o.longer[best] + o.seconds(best, d))
		}
	}
}

func (o *oracle) before(a, b graph.OpID) bool {
	if o.priority != nil {
		return o.rank(a) < o.rank(b)
	}
	return o.readyAt[a] < o.readyAt[b] || o.readyAt[a] == o.readyAt[b] && a < b
}

func (o *oracle) nextInstant(now float64) float64 {
	next := math.Inf(1)
	for _, id := range o.running {
		next = min(next, o.end[id])
	}
	for _, at := range o.copying {
		if at > now {
			next = min(next, at)
		}
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
	for _, i := range o.members(id) {
		for _, t := range o.g.Inputs(i) {
			if o.kernel[o.g.Tensor(t).Producer] != id && !o.present[delivery{t, none, d}] {
				return false
			}
		}
		for _, c := range o.g.Control(i) {
			if o.sender && int(o.device[c]) != d {
				continue
			}
			if !o.present[delivery{none, o.kernel[c], d}] {
				return false
			}
		}
	}
	return true
}

func (o *oracle) kernels() (ks []graph.OpID) {
	for i, k := range o.kernel {
		if graph.OpID(i) == k {
			ks = append(ks, k)
		}
	}
	return ks
}

func (o *oracle) members(k graph.OpID) (ops []graph.OpID) {
	for i, x := range o.kernel {
		if x == k {
			ops = append(ops, graph.OpID(i))
		}
	}
	return ops
}

// others returns those of ops that are not of kernel k.
func (o *oracle) others(k graph.OpID, ops []graph.OpID) (out []graph.OpID) {
	for _, i := range ops {
		if o.kernel[i] != k {
			out = append(out, i)
		}
	}
	return out
}

// kept reports whether tensor t is read within its kernel, and outside for its
// shape at most.
func (o *oracle) kept(t graph.TensorID) bool {
	k := o.kernel[o.g.Tensor(t).Producer]
	users := o.g.Consumers(t)
	outside := o.others(k, users)
	for _, v := range outside {
		if f, _ := graph.FactsOf(o.g.Op(v).Kind); !f.ReadsShape {
			return false
		}
	}
	return len(outside) < len(users)
}

func (o *oracle) rank(k graph.OpID) int32 {
	rank := o.priority[k]
	for _, i := range o.members(k) {
		rank = min(rank, o.priority[i])
	}
	return rank
}

func (o *oracle) seconds(k graph.OpID, d int) float64 {
	ops := o.members(k)
	if len(ops) == 1 {
		return float64(o.cost.OpSeconds(k, d))
	}
	compute, memory, launch := 0.0, 0.0, 0.0
	for _, i := range ops {
		p := o.cost.(KernelCostModel).Parts(i, d)
		bytes := fuse.Traffic(o.g, o.role, i, func(x graph.OpID) bool { return o.kernel[x] == k })
		compute += float64(p.Compute)
		memory += float64(bytes) * p.PerByte
		launch = max(launch, float64(p.Launch))
	}
	return max(compute, memory) + launch
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
		if !o.alone {
			start = max(start, o.linkFree[l])
		}
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

// copy makes one copy of tensor t for all readers, behind the copies that device
// src is at.
func (o *oracle) copy(t graph.TensorID, src int, readers []int, bytes int64, now float64) {
	start, took := max(now, o.copying[src]), 0.0
	for _, d := range readers {
		if d != src {
			took = max(took, float64(o.m.TransferSeconds(src, d, units.Bytes(bytes))))
		}
	}
	if took == 0 {
		return
	}
	o.copying[src] = start + took
	for _, d := range readers {
		if d == src {
			continue
		}
		x := oracleTransfer{what: delivery{t, none, d}, src: src, ready: now, start: start, end: start + took, bytes: bytes}
		o.all = append(o.all, x)
		delivered := 0.0
		for _, l := range o.m.Route(src, d) {
			delivered += float64(o.m.Links[l].Delivery)
		}
		x.end += delivered
		o.pending = append(o.pending, x)
	}
}

// receipts is what kernel k, about to start on device d, is the first there to read.
func (o *oracle) receipts(k graph.OpID, d int) (seconds float64) {
	if !o.sender {
		return 0
	}
	for _, i := range o.members(k) {
		for _, t := range o.g.Inputs(i) {
			src := int(o.device[o.g.Tensor(t).Producer])
			if src == d || o.read[delivery{t, none, d}] {
				continue
			}
			o.read[delivery{t, none, d}] = true
			bytes, slowest := float64(o.g.Tensor(t).Bytes), math.Inf(1)
			if o.kept(t) {
				bytes = 0
			}
			for _, l := range o.m.Route(src, d) {
				seconds += float64(o.m.Links[l].Receive)
				if b := float64(o.m.Links[l].ReceiveBandwidth); b > 0 {
					slowest = min(slowest, b)
				}
			}
			seconds += bytes / slowest
		}
	}
	return seconds
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
	// until is when nobody needs what is in the memory of tensor t on device d any more,
	// by its own name or that of a view made there.
	var until func(t graph.TensorID, d int) float64
	until = func(t graph.TensorID, d int) (last float64) {
		if k := o.kernel[o.g.Tensor(t).Producer]; int(o.device[k]) == d {
			last = o.end[k]
			for _, x := range o.all {
				if x.what.tensor == t {
					last = max(last, x.end)
				}
			}
		}
		for _, v := range o.g.Consumers(t) {
			if int(o.device[v]) == d {
				last = max(last, o.end[o.kernel[v]])
			}
		}
		for i := range o.g.NumOps() {
			first, end := o.g.Outputs(graph.OpID(i))
			for v := first; v < end; v++ {
				if at, is := o.viewOf(v); is && at == t && int(o.device[i]) == d && len(o.g.Consumers(v)) > 0 && !o.kept(v) {
					last = max(last, until(v, d))
				}
			}
		}
		return last
	}
	for i := range o.g.NumOps() {
		id, k := graph.OpID(i), o.kernel[i]
		op, d := o.g.Op(id), int(o.device[i])
		hold(d, 0, math.Inf(1), int64(op.Resident))
		hold(d, o.start[k], o.end[k], int64(op.Workspace))
		first, end := o.g.Outputs(id)
		for t := first; t < end; t++ {
			if _, is := o.viewOf(t); is || o.g.Tensor(t).Resident || o.kept(t) {
				continue
			}
			hold(d, o.start[k], until(t, d), int64(o.g.Tensor(t).Bytes))
		}
	}
	for _, x := range o.all {
		if t := x.what.tensor; t != none {
			hold(x.what.device, x.start, until(t, x.what.device), x.bytes)
		}
	}
}

// viewOf returns the tensor whose memory t shares, if it is a view of one: what its op
// reads first, views that stay in its kernel passed by. What a kernel keeps to itself
// is in no memory that could be shared.
func (o *oracle) viewOf(t graph.TensorID) (graph.TensorID, bool) {
	p := o.g.Tensor(t).Producer
	first, end := o.g.Outputs(p)
	if o.role[p] != graph.FuseView || end-first != 1 || o.g.Tensor(o.g.Inputs(p)[0]).Bytes < o.g.Tensor(t).Bytes {
		return none, false
	}
	x := o.g.Inputs(p)[0]
	if o.kernel[o.g.Tensor(x).Producer] == o.kernel[p] && o.kept(x) {
		return o.viewOf(x)
	}
	return x, true
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
