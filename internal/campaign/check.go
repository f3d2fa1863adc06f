package campaign

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// slack is what times may differ by, relatively: sums in another order.
const slack = 1e-9

// Faults returns what is wrong with result r, with its trace, of decision d: every
// rule of docs/formats.md and of the simulator's documentation that can be seen from
// outside, counted anew from the spans. seconds gives the time of an op on a device.
// It knows nothing of how the simulator works.
func Faults(g *graph.Graph, m *hw.Machine, contention string, d plan.Decision, seconds func(graph.OpID, int) units.Seconds, r *sim.Result) []string {
	c := &checker{g: g, m: m, d: d, r: r, contention: contention, seconds: seconds, span: make([]*sim.OpSpan, g.NumOps()), sent: map[message]*sim.TransferSpan{}}
	c.ops()
	if len(c.faults) == 0 {
		c.transfers()
		c.inputs()
		c.devices()
		c.memory()
	}
	return c.faults
}

type checker struct {
	g          *graph.Graph
	m          *hw.Machine
	d          plan.Decision
	r          *sim.Result
	contention string
	seconds    func(graph.OpID, int) units.Seconds
	span       []*sim.OpSpan // [N]
	sent       map[message]*sim.TransferSpan
	faults     []string
}

// message is a tensor, or an op's end, on its way to a device.
type message struct {
	op     graph.OpID
	tensor graph.TensorID
	to     int
}

func (c *checker) fault(format string, a ...any) {
	if len(c.faults) < 10 {
		c.faults = append(c.faults, fmt.Sprintf(format, a...))
	}
}

func before(a, b units.Seconds) bool {
	return float64(a) <= float64(b)+slack*math.Abs(float64(b))+1e-15
}
func same(a, b units.Seconds) bool { return before(a, b) && before(b, a) }

// ops: each op runs once, where the plan says, for as long as it takes; the step ends
// with the last.
func (c *checker) ops() {
	var last units.Seconds
	for k := range c.r.Trace.Ops {
		s := &c.r.Trace.Ops[k]
		for _, i := range append([]graph.OpID{s.Op}, s.Fused...) {
			if c.span[i] != nil {
				c.fault("op %d runs twice", i)
			}
			c.span[i] = s
			if s.Device != int(c.d.Device[i]) {
				c.fault("op %d runs on device %d, is placed on %d", i, s.Device, c.d.Device[i])
			}
		}
		if s.Fused == nil && !same(s.End, s.Start+c.seconds(s.Op, s.Device)) {
			c.fault("op %d takes %v, want %v", s.Op, s.End-s.Start, c.seconds(s.Op, s.Device))
		}
		last = max(last, s.End)
	}
	for i, s := range c.span {
		if s == nil {
			c.fault("op %d never runs", i)
		}
	}
	if !same(last, c.r.Makespan) {
		c.fault("the last op ends at %v, the step at %v", last, c.r.Makespan)
	}
}

// transfers: each begins after its op, at most once to each device, and holds its
// route for latency and bytes over bandwidth; fifo links carry one at a time.
func (c *checker) transfers() {
	onLink := make([][]*sim.TransferSpan, len(c.m.Links))
	for k := range c.r.Trace.Transfers {
		t := &c.r.Trace.Transfers[k]
		key := message{t.Op, t.Tensor, t.To}
		if c.sent[key] != nil {
			c.fault("op %d sends tensor %d to device %d twice", t.Op, t.Tensor, t.To)
		}
		c.sent[key] = t
		if s := c.span[t.Op]; t.From != s.Device || t.To == t.From || !before(s.End, t.Start) {
			c.fault("a transfer of op %d from %d to %d at %v; the op ends on %d at %v", t.Op, t.From, t.To, t.Start, s.Device, s.End)
		}
		shape := c.span[t.Op].Fused != nil && t.Bytes == 0 // of a tensor that its kernel keeps
		if t.Tensor != sim.NoTensor && t.Bytes != c.g.Tensor(t.Tensor).Bytes && !shape {
			c.fault("tensor %d of %d bytes is sent as %d", t.Tensor, c.g.Tensor(t.Tensor).Bytes, t.Bytes)
		}
		latency, bandwidth := units.Seconds(0), math.Inf(1)
		for _, l := range c.m.Route(t.From, t.To) {
			latency += c.m.Links[l].Latency
			bandwidth = min(bandwidth, float64(c.m.Links[l].Bandwidth))
			onLink[l] = append(onLink[l], t)
		}
		least := latency + units.Seconds(float64(t.Bytes)/bandwidth)
		if !before(t.Start+least, t.End) || c.contention != "fair-share" && !same(t.Start+least, t.End) {
			c.fault("tensor %d takes %v from %d to %d, want %v", t.Tensor, t.End-t.Start, t.From, t.To, least)
		}
		if c.contention == "none" && !same(t.Start, c.span[t.Op].End) {
			c.fault("tensor %d waits until %v though nothing is shared", t.Tensor, t.Start)
		}
	}
	if c.contention != "fifo" {
		return
	}
	for l, ts := range onLink {
		slices.SortFunc(ts, func(a, b *sim.TransferSpan) int { return cmp.Compare(a.Start, b.Start) })
		for k := 1; k < len(ts); k++ {
			if !before(ts[k-1].End, ts[k].Start) {
				c.fault("link %d carries tensors %d and %d at once", l, ts[k-1].Tensor, ts[k].Tensor)
			}
		}
	}
}

// inputs: an op starts when all that it reads, and all that it waits for, is there, and is
// ready as soon as the last of it is.
func (c *checker) inputs() {
	last := map[*sim.OpSpan]units.Seconds{}
	vague := map[*sim.OpSpan]bool{} // it is not told which message of an op let it go on
	for i := range c.span {
		s := c.span[i]
		waits := func(p graph.OpID, t graph.TensorID) {
			if c.span[p] == s {
				return // within one kernel
			}
			if c.span[p].Device == s.Device {
				last[s] = max(last[s], c.span[p].End)
				if !before(c.span[p].End, s.Start) {
					c.fault("op %d starts at %v, before op %d ends at %v", i, s.Start, p, c.span[p].End)
				}
				return
			}
			x := c.sent[message{p, t, s.Device}]
			if x == nil && t == sim.NoTensor { // any tensor of p says that p has ended
				vague[s] = true
				return
			}
			if x != nil {
				last[s] = max(last[s], x.End)
			}
			if x == nil {
				c.fault("op %d reads tensor %d on device %d, which never gets it", i, t, s.Device)
			} else if !before(x.End, s.Start) {
				c.fault("op %d starts at %v, before tensor %d is there at %v", i, s.Start, t, x.End)
			}
		}
		for _, t := range c.g.Inputs(graph.OpID(i)) {
			waits(c.g.Tensor(t).Producer, t)
		}
		for _, p := range c.g.Control(graph.OpID(i)) {
			waits(p, sim.NoTensor)
		}
	}
	for _, s := range c.span {
		if !vague[s] && !same(s.Ready, last[s]) {
			c.fault("op %d is ready at %v, the last of what it waits for is there at %v", s.Op, s.Ready, last[s])
		}
	}
}

// devices: one op at a time, none idle while an op is ready, and of the ready ones
// that of the lowest priority value.
func (c *checker) devices() {
	runs := make([][]*sim.OpSpan, c.m.NumDevices())
	for k := range c.r.Trace.Ops {
		s := &c.r.Trace.Ops[k]
		runs[s.Device] = append(runs[s.Device], s)
	}
	for d, run := range runs {
		slices.SortFunc(run, func(a, b *sim.OpSpan) int { return cmp.Compare(a.Start, b.Start) })
		for k, s := range run {
			free := units.Seconds(0)
			if k > 0 {
				free = run[k-1].End
			}
			if !before(free, s.Start) || !same(s.Start, max(free, s.Ready)) {
				c.fault("device %d: op %d, ready at %v, starts at %v; the device is free at %v", d, s.Op, s.Ready, s.Start, free)
			}
			for _, later := range run[k+1:] {
				if later.Ready < s.Start*(1-slack) && c.first(later) < c.first(s) {
					c.fault("device %d: op %d starts at %v, before op %d, which is ready since %v and goes first", d, s.Op, s.Start, later.Op, later.Ready)
				}
			}
		}
	}
}

// first returns the place of a span among those that are ready: of a kernel the lowest
// value of its ops, without priorities the time of becoming ready.
func (c *checker) first(s *sim.OpSpan) float64 {
	if c.d.Priority == nil {
		return float64(s.Ready)
	}
	least := c.d.Priority[s.Op]
	for _, i := range s.Fused {
		least = min(least, c.d.Priority[i])
	}
	return float64(least)
}

// memory: the peak of each device, by adding up at every instant what it holds. Fused
// plans are left out: what is inside a kernel is never stored.
func (c *checker) memory() {
	if c.r.PeakBytes == nil || len(c.r.Trace.Ops) < c.g.NumOps() {
		return
	}
	type change struct {
		at    units.Seconds
		bytes units.Bytes
	}
	changes := make([][]change, c.m.NumDevices())
	base := make([]units.Bytes, c.m.NumDevices())
	hold := func(d int, bytes units.Bytes, from, until units.Seconds) {
		if bytes > 0 && from < until {
			changes[d] = append(changes[d], change{from, bytes}, change{until, -bytes})
		}
	}
	// until returns when device d can forget tensor t, which it has made or received:
	// when the last op there that reads t or a view of it has ended, and the last
	// transfer from there.
	var until func(t graph.TensorID, d int) units.Seconds
	until = func(t graph.TensorID, d int) (at units.Seconds) {
		p := c.g.Tensor(t).Producer
		if c.span[p].Device == d {
			at = c.span[p].End
			for to := range c.m.NumDevices() {
				if y := c.sent[message{p, t, to}]; y != nil {
					at = max(at, y.End)
				}
			}
		}
		for _, i := range c.g.Consumers(t) {
			if c.span[i].Device == d {
				at = max(at, c.span[i].End)
				if of, view := c.viewed(i); view && of == t {
					first, _ := c.g.Outputs(i)
					at = max(at, until(first, d))
				}
			}
		}
		return at
	}
	for i, s := range c.span {
		op := c.g.Op(graph.OpID(i))
		base[s.Device] += op.Resident
		hold(s.Device, op.Workspace, s.Start, s.End)
		if _, view := c.viewed(graph.OpID(i)); view {
			continue
		}
		first, end := c.g.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			if x := c.g.Tensor(t); !x.Resident {
				hold(s.Device, x.Bytes, s.Start, until(t, s.Device))
			}
		}
	}
	for key, x := range c.sent {
		if key.tensor != sim.NoTensor {
			hold(x.To, x.Bytes, x.Start, until(key.tensor, x.To))
		}
	}
	for d, list := range changes {
		slices.SortFunc(list, func(a, b change) int { // what is freed at an instant goes first
			if n := cmp.Compare(a.at, b.at); n != 0 {
				return n
			}
			return cmp.Compare(a.bytes, b.bytes)
		})
		held, peak := base[d], base[d]
		for _, x := range list {
			held += x.bytes
			peak = max(peak, held)
		}
		if peak != c.r.PeakBytes[d] {
			c.fault("device %d: peak %d bytes, counted %d", d, c.r.PeakBytes[d], peak)
		}
	}
}

// viewed returns the tensor that op i passes on as it is, in the same memory (docs/memory.md).
func (c *checker) viewed(i graph.OpID) (of graph.TensorID, view bool) {
	first, end := c.g.Outputs(i)
	in := c.g.Inputs(i)
	if end-first != 1 || len(in) == 0 || !slices.Contains(viewKinds, c.g.Op(i).Kind) || c.g.Tensor(first).Bytes > c.g.Tensor(in[0]).Bytes {
		return 0, false
	}
	return in[0], true
}

var viewKinds = []graph.Kind{"Identity", "Reshape", "ExpandDims", "Squeeze", "Unsqueeze", "Flatten", "StopGradient", "PreventGradient"}
