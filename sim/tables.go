package sim

import (
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/hw"
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
	residents []resident
	maxSends  int // no run has more transfers

	routes []route // [D*D], by source then destination
	hops   []int32 // links of the routes
	// Inboxes of device d are inboxAt[d]..inboxAt[d+1], and so its outboxes.
	inboxAt, outboxAt []int32 // [D+1]
}

const (
	deviceBits = 6 // hw.MaxDevices is 64
	deviceMask = 1<<deviceBits - 1
	// maxSize bounds ops and messages, which share words with devices, and the
	// users of a tensor.
	maxSize = keep
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
	t := &tables{g: g, m: m, cfg: cfg, n: g.NumOps(), d: m.NumDevices()}
	if size := t.n + g.NumTensors(); size >= maxSize {
		return nil, fmt.Errorf("simulator: graph %s has %d ops and outputs, at most %d are supported", g.Name(), size, maxSize-1)
	}
	if err := t.readCosts(c); err != nil {
		return nil, err
	}
	t.readGraph()
	return t, t.readRoutes()
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

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

// readGraph lays out messages, consumers and the static part of the memory
// accounts.
func (t *tables) readGraph() {
	g := t.g
	waiters := make([][]graph.OpID, t.n) // ops that wait by control dependency, ascending
	for i := range t.n {
		for _, c := range g.Control(graph.OpID(i)) {
			waiters[c] = append(waiters[c], graph.OpID(i))
		}
	}
	t.ops = make([]opRow, t.n+1)
	t.pending = make([]uint32, t.n)
	t.first = make([]int32, t.n+1)
	rowOf := make([]int32, g.NumTensors()) // row of reference counts
	for i := range t.n {
		op, row := g.Op(graph.OpID(i)), &t.ops[i]
		t.first[i] = int32(len(t.messages))
		row.seconds = t.seconds[0][i]
		row.alloc, row.free = int64(op.Workspace), row.free+int64(op.Workspace)
		if op.Resident > 0 {
			t.residents = append(t.residents, resident{int32(i), int64(op.Resident)})
		}
		first, end := g.Outputs(graph.OpID(i))
		for id := first; id < end; id++ {
			x, users := g.Tensor(id), g.Consumers(id)
			if !x.Resident {
				row.alloc += int64(x.Bytes)
			}
			rowOf[id] = none
			switch {
			case len(users) == 0 && !x.Resident:
				row.free += int64(x.Bytes)
			case len(users) == 0:
			default:
				if len(users) == 1 && !x.Resident {
					t.ops[users[0]].free += int64(x.Bytes)
				} else {
					rowOf[id] = int32(len(t.rowSize))
					t.rowSize = append(t.rowSize, int64(x.Bytes))
				}
				t.emit(int32(i), message{size: int64(x.Bytes), row: rowOf[id], tensor: int32(id)}, users)
			}
		}
		if len(waiters[i]) > 0 {
			t.emit(int32(i), message{row: none, tensor: none}, waiters[i])
		}
	}
	t.first[t.n] = int32(len(t.messages))
	for i := range t.n {
		if t.pending[i] == 0 {
			t.sources = append(t.sources, int32(i))
		}
	}
	t.encode(rowOf)
}

// encode writes the programs. That of op i starts with the rows of reference
// counts that its end counts down, one for each distinct input that others read
// too. Then follow its messages: one with a single consumer v and no row is the
// one word ^v; any other is twice its number of consumers, plus 1 for a resident
// tensor, its row or none, and its consumers.
// The program ends where that of op i+1 starts.
func (t *tables) encode(rowOf []int32) {
	last := make([]int32, len(t.rowSize)) // last op that listed the row, plus one
	for i := range t.n {
		t.ops[i].inputs = int32(len(t.program))
		for _, id := range t.g.Inputs(graph.OpID(i)) {
			if r := rowOf[id]; r != none && last[r] != int32(i)+1 {
				last[r] = int32(i) + 1
				t.program = append(t.program, r)
			}
		}
		t.ops[i].sends = int32(len(t.program))
		for _, m := range t.messages[t.first[i]:t.first[i+1]] {
			users := t.use[m.first:m.end]
			if len(users) == 1 && m.row == none {
				t.program = append(t.program, ^users[0])
				continue
			}
			w := int32(len(users)) << 1
			if m.tensor != none && t.g.Tensor(graph.TensorID(m.tensor)).Resident {
				w |= 1
			}
			t.program = append(t.program, w, m.row)
			t.program = append(t.program, users...)
		}
	}
	t.ops[t.n].inputs = int32(len(t.program))
	t.program = append(t.program, 0) // dispatch looks at the first word of every program
}

func (t *tables) emit(producer int32, m message, users []graph.OpID) {
	m.first = int32(len(t.use))
	for _, v := range users {
		t.use = append(t.use, int32(v))
		t.pending[v] += 1 << deviceBits
	}
	m.end = int32(len(t.use))
	t.messages = append(t.messages, m)
	t.producer = append(t.producer, producer)
	t.maxSends += min(len(users), t.d-1)
}
