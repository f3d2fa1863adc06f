package sim

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/parallel"
	"placer/units"
)

// tables is what a simulator knows of one graph on one machine. It does not
// change after New, so clones share it.
type tables struct {
	g       *graph.Graph
	m       *hw.Machine
	cfg     Config
	n, d    int
	equal   bool        // all devices take the same times
	seconds [][]float64 // [D][N]; devices with equal times share a column

	layout *layout
	steps  *stepCache
	rules  func() *fuse.Rules // made when first asked for

	// What follows is of the graph's ops, each a kernel of its own, or of the
	// kernels of a fused run; N counts those there.
	pending []uint32 // [N] messages an op waits for, shifted by deviceBits
	sources []int32  // ops that wait for none, ascending
	ops     []opRow  // [N+1]; a last row ends the last op's program
	// program holds, for each op, what the event loop does when it ends; see
	// encode.
	program   []int32
	messages  []message // by producer
	producer  []int32   // [messages]
	first     []int32   // [N+1] first message of each op
	use       []int32   // consumers of the messages
	rowSize   []int64   // [R] bytes of the tensor of each row of reference counts
	rowShare  []int32   // [R] row of the tensor whose memory it shares where it is made, or none
	views     []int32   // [T] scratch of encode, by row: uses by views of the kernel at hand
	residents []resident
	maxSends  int // no run has more transfers

	routes []route // [D*D], by source then destination
	hops   []int32 // links of the routes
	// Where transfers occupy the sender, else nil: what routes cost behind the copy,
	// [D*D], and the messages of tensors that op i reads, reads[readAt[i]:readAt[i+1]].
	receipts      []receipt
	readAt, reads []int32
	// Inboxes of device d are inboxAt[d]..inboxAt[d+1], and so its outboxes.
	inboxAt, outboxAt []int32 // [D+1]
}

const (
	deviceBits = 6 // hw.MaxPlaced is 64
	deviceMask = 1<<deviceBits - 1
	// maxSize bounds ops and messages, which share words with devices, and the
	// users of a tensor.
	maxSize = always
)

// opRow is what the event loop needs of an op, half a cache line.
type opRow struct {
	alloc int64 // bytes allocated at the start: outputs and workspace
	// free is what the end frees without looking: workspace, outputs that nobody
	// reads, and inputs that nobody else reads.
	free    int64
	seconds float64 // on device 0
	// inputs and sends are where the two parts of the op's program start.
	inputs, sends int32
}

// message is what an op sends when it ends.
type message struct {
	size       int64 // bytes moved, and held by each receiver
	first, end int32 // consumers
	// row is the tensor's row of reference counts; none where a single consumer
	// makes counting unnecessary, and for control messages.
	row int32
	// tensor is the id, or none for a control message.
	tensor int32
}

const none = -1

// resident is an op's permanent memory.
type resident struct {
	op    int32
	bytes int64
}

// route is the way from one device to another.
type route struct {
	latency    float64
	bandwidth  float64
	first, end int32 // into hops
	// Transfers over routes of one inbox, or of one outbox, never overlap.
	inbox, outbox int32
}

// seconds returns the time that a transfer holds the route.
func (r *route) seconds(bytes int64) float64 { return r.latency + float64(bytes)/r.bandwidth }

func newTables(g *graph.Graph, m *hw.Machine, c CostModel, cfg Config) (*tables, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	if m.NumDevices() > hw.MaxPlaced {
		return nil, fmt.Errorf("simulator: machine %s has %d devices, ops are placed one by one on at most %d; --gpus %d takes the first of them, and 'placer strategies' divides a step among all", m.Name, m.NumDevices(), hw.MaxPlaced, hw.MaxPlaced)
	}
	t := &tables{g: g, m: m, cfg: cfg, n: g.NumOps(), d: m.NumDevices(), steps: new(stepCache)}
	if size := t.n + g.NumTensors(); size >= maxSize {
		return nil, fmt.Errorf("simulator: graph %s has %d ops and outputs, at most %d are supported", g.Name(), size, maxSize-1)
	}
	t.rules = sync.OnceValue(func() *fuse.Rules { return fuse.NewRules(g) })
	var beside parallel.Group
	beside.Go(func() { t.layout = newLayout(g) })
	err := t.readCosts(c)
	var parts [][]fuse.Parts
	if err == nil {
		parts, err = t.readParts(c)
	}
	beside.Wait()
	if err != nil {
		return nil, err
	}
	t.layout.parts = parts
	if m.OccupiesSender() {
		if err := t.readReceipts(); err != nil {
			return nil, err
		}
		t.readAt, t.reads = make([]int32, t.n+1), make([]int32, 0, len(t.layout.in))
	}
	n := t.n
	t.ops, t.pending, t.first = make([]opRow, n+1), make([]uint32, n), make([]int32, n+1)
	t.views = make([]int32, g.NumTensors())
	t.lay(t.layout, alone(n), make([]int32, g.NumTensors()), make([]int32, max(n, g.NumTensors())+1))
	for i := range n {
		t.ops[i].seconds = t.seconds[0][i]
	}
	return t, t.readRoutes()
}

// longest bounds the time of an op and of a transfer, in seconds: sums of so many
// stay finite.
const longest = 1e18

func positive(x float64) bool { return 0 < x && x <= longest }

// takes returns the seconds of op i on device d.
func (t *tables) takes(d int, i int32) float64 {
	if t.equal {
		return t.ops[i].seconds
	}
	return t.seconds[d][i]
}

func (t *tables) readCosts(c CostModel) error {
	t.seconds = make([][]float64, t.d)
	for d := range t.d {
		col := make([]float64, t.n)
		for i := range col {
			col[i] = float64(c.OpSeconds(graph.OpID(i), d))
			if !positive(col[i]) {
				return fmt.Errorf("simulator: op %d (%s) takes %v s on %s, want a positive finite time",
					i, t.g.Op(graph.OpID(i)).Name, col[i], t.m.Devices[d].Name)
			}
		}
		for _, other := range t.seconds[:d] {
			if slices.Equal(other, col) {
				col = other
				break
			}
		}
		t.seconds[d] = col
	}
	t.equal = true
	for _, col := range t.seconds {
		t.equal = t.equal && &col[0] == &t.seconds[0][0]
	}
	return nil
}

// readParts reads what the times of kernels depend on.
func (t *tables) readParts(c CostModel) ([][]fuse.Parts, error) {
	kc, ok := c.(KernelCostModel)
	parts := make([][]fuse.Parts, t.d)
	for d := range t.d {
		col := make([]fuse.Parts, t.n)
		for i := range col {
			if ok {
				col[i] = kc.Parts(graph.OpID(i), d)
				if p := col[i]; !(p.Compute >= 0 && p.Launch >= 0 && positive(float64(p.Compute+p.Launch)) && p.PerByte >= 0 && !math.IsInf(p.PerByte, 1)) {
					return nil, fmt.Errorf("simulator: op %d (%s) has %+v on %s, want none below 0 and a positive finite time",
						i, t.g.Op(graph.OpID(i)).Name, p, t.m.Devices[d].Name)
				}
			} else {
				col[i] = fuse.Parts{Compute: units.Seconds(t.seconds[d][i])}
			}
		}
		for e := range d {
			if &t.seconds[e][0] == &t.seconds[d][0] && slices.Equal(parts[e], col) {
				col = parts[e]
				break
			}
		}
		parts[d] = col
	}
	return parts, nil
}

// readRoutes needs the messages: the largest one must arrive in finite time.
func (t *tables) readRoutes() error {
	var largest int64
	for i := range t.messages {
		largest = max(largest, t.messages[i].size)
	}
	t.routes = make([]route, t.d*t.d)
	for s := range t.d {
		for e := range t.d {
			latency, bandwidth := t.m.Transfer(s, e)
			r := route{latency: float64(latency), bandwidth: float64(bandwidth), first: int32(len(t.hops))}
			t.hops = append(t.hops, t.m.Route(s, e)...)
			r.end = int32(len(t.hops))
			if s != e && !(positive(r.seconds(0)) && positive(r.seconds(largest))) {
				return fmt.Errorf("simulator: link %s: the route from %s to %s takes %v s for a control message and %v s for %d bytes, want positive finite times",
					t.m.Links[t.hops[r.first]].Name, t.m.Devices[s].Name, t.m.Devices[e].Name, r.seconds(0), r.seconds(largest), largest)
			}
			t.routes[s*t.d+e] = r
		}
	}
	t.boxes()
	return nil
}

// boxes gives each device its inboxes and outboxes, as few as it can: one where
// the device has a port that all its routes go through.
func (t *tables) boxes() {
	t.inboxAt, t.outboxAt = make([]int32, t.d+1), make([]int32, t.d+1)
	for d := range t.d {
		var in, out []*route
		for e := range t.d {
			if e != d {
				in, out = append(in, &t.routes[e*t.d+d]), append(out, &t.routes[d*t.d+e])
			}
		}
		t.inboxAt[d+1] = t.share(in, t.inboxAt[d], func(r *route) *int32 { return &r.inbox })
		t.outboxAt[d+1] = t.share(out, t.outboxAt[d], func(r *route) *int32 { return &r.outbox })
	}
}

// share numbers boxes from next on, always for the link that most of the routes
// left have in common, and returns the number after the last.
func (t *tables) share(routes []*route, next int32, box func(*route) *int32) int32 {
	for ; len(routes) > 0; next++ {
		count := make([]int, len(t.m.Links))
		best := int32(0)
		for _, r := range routes {
			for _, l := range t.hops[r.first:r.end] {
				if count[l]++; count[l] > count[best] || count[l] == count[best] && l < best {
					best = l
				}
			}
		}
		routes = slices.DeleteFunc(routes, func(r *route) bool {
			if !slices.Contains(t.hops[r.first:r.end], best) {
				return false
			}
			*box(r) = next
			return true
		})
	}
	return next
}
