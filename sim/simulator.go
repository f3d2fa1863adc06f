package sim

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/units"
)

// Simulator predicts the step of one graph on one machine under any plan. It
// serves one goroutine; Clone gives another one its own.
type Simulator struct {
	tables // a copy: its slices are shared, and one step nearer

	state  []opState // [N]
	rows   []rowState
	copies []int32 // [R,D] users left of a tensor's copy on a device that received it
	opAt   []int32 // [N] op of each rank
	fifo   bool    // of the run under way: no priorities
	ranked []rankQueue
	fifos  []arrivalQueue
	buffer []int32 // [N] of the arrival queues

	// key is the time of each device's next event as an integer (see bits), +Inf
	// for none and beyond the last device.
	key  [hw.MaxPlaced]uint64
	devs []deviceState

	transfers []transfer // of the run so far, in the order of becoming ready
	inboxes   []inbox
	outboxes  []outbox
	linkFree  []float64 // [L]

	fair    *fairState // nil where links serve one transfer at a time
	sending *sending   // nil where transfers hold links

	fused *fusion // nil before the first fused run

	record bool
	starts []float64 // [N] start of each op, when record is set
}

// opState is an op during a run.
type opState struct {
	waits uint32 // messages missing << deviceBits | device
	rank  int32
}

// rowState is a tensor whose users are counted.
type rowState struct {
	size int64
	// home is the device that made the tensor, below its users left there: local
	// consumers and outgoing transfers << deviceBits.
	home uint32
	// share is the row of the tensor in whose memory the tensor is where it was made,
	// a use of it, or none.
	share int32
}

// deviceState is a device during a run.
type deviceState struct {
	running int32   // op, or none
	arrive  float64 // earliest arrival not taken in yet
	// Memory events, of incoming transfers that start and outgoing ones that end,
	// wait until the device's own next event.
	start   float64
	release float64
	instant float64 // of the latest change to bytes
	bytes   int64
	peak    int64 // before instant
	hint    uint32
}

// transfer is a message on its way to one device.
type transfer struct {
	start, end float64
	size       int64
	what       uint32 // message << deviceBits | destination
	// Later ones of the same inbox and of the same outbox, or none.
	nextIn, nextOut int32
}

func (x *transfer) message() int32 { return int32(x.what >> deviceBits) }
func (x *transfer) dst() int       { return int(x.what & deviceMask) }

// inbox holds transfers to one device that share a link, hence one at a time: a
// list in which two readers advance, the device's arrivals and its allocations.
type inbox struct {
	arriveAt, startAt   float64 // of the next to be read, or +Inf
	arrive, start, last int32   // transfers, or none
}

// outbox holds transfers from one device that share a link: a list in which the
// device's releases advance.
type outbox struct {
	releaseAt     float64
	release, last int32
}

// New returns a simulator of g on m. Op times come from c, once.
func New(g *graph.Graph, m *hw.Machine, c CostModel, cfg Config) (*Simulator, error) {
	t, err := newTables(g, m, c, cfg)
	if err != nil {
		return nil, err
	}
	return newSimulator(t), nil
}

func newSimulator(t *tables) *Simulator {
	s := &Simulator{
		tables:    *t,
		state:     make([]opState, t.n),
		rows:      make([]rowState, len(t.rowSize)),
		copies:    make([]int32, len(t.rowSize)*t.d),
		opAt:      make([]int32, t.n),
		ranked:    make([]rankQueue, t.d),
		fifos:     make([]arrivalQueue, t.d),
		buffer:    make([]int32, t.n),
		devs:      make([]deviceState, t.d),
		transfers: make([]transfer, 0, t.maxSends),
		inboxes:   make([]inbox, t.inboxAt[t.d]),
		outboxes:  make([]outbox, t.outboxAt[t.d]),
		linkFree:  make([]float64, len(t.m.Links)),
	}
	if t.cfg.Contention != FIFO {
		s.fair = newFairState(t)
	}
	if t.receipts != nil {
		s.sending = newSending(t)
	}
	for d := range s.ranked {
		s.ranked[d] = newRankQueue(t.n)
	}
	s.layRows()
	for d := range s.key {
		s.key[d] = never
	}
	return s
}

// layRows gives the rows what does not change from run to run.
func (s *Simulator) layRows() {
	for r, size := range s.rowSize {
		s.rows[r].size, s.rows[r].share = size, s.rowShare[r]
	}
}

// Clone returns a simulator for another goroutine; it shares the tables.
func (s *Simulator) Clone() plan.Evaluator { return newSimulator(&s.tables) }

// Contention returns how transfers share links.
func (s *Simulator) Contention() Contention { return s.cfg.Contention }

// OpSeconds returns the time of every op on device d, [N], read-only.
func (s *Simulator) OpSeconds(d int) []float64 { return s.seconds[d] }

// Evaluate runs the step as d says: op i on d.Device[i], [N], under d.Priority, [N]
// or nil for FIFO, fused by d.Fusion, [N] or nil for not at all (package fuse).
// Overflow is 0 when the simulator does not count memory. Evaluate keeps no slice
// and allocates nothing but on the first call with a fusion. It panics on lengths
// that disagree, devices that do not exist and priorities that are no permutation;
// the simulator must not be used again after a panic.
func (s *Simulator) Evaluate(d plan.Decision) plan.Score {
	if d.Fusion != nil {
		return s.evaluateFused(d)
	}
	score := plan.Score{Value: s.run(d.Device, d.Priority)}
	if s.cfg.Memory {
		for d := range s.devs {
			score.Overflow += max(0, units.Bytes(s.devs[d].peak)-s.m.Devices[d].Memory)
		}
	}
	return score
}

var inf = math.Inf(1)

// Keys compare times as integers, which is faster: times are not negative.
var never = math.Float64bits(inf)

// reset prepares a run.
func (s *Simulator) reset(device []uint8, priority []int32) {
	if len(device) != s.n || priority != nil && len(priority) != s.n {
		panic(fmt.Sprintf("sim: %d devices and %d priorities for %d ops", len(device), len(priority), s.n))
	}
	s.fifo = priority == nil
	state, pending := s.state[:len(device)], s.pending[:len(device)]
	if s.fifo {
		for i, d := range device {
			state[i].waits = pending[i] | uint32(d)
		}
		s.resetFIFO(device)
	} else {
		priority := priority[:len(device)]
		for i, d := range device {
			r := priority[i]
			state[i] = opState{pending[i] | uint32(d), r}
			s.opAt[r] = int32(i)
		}
	}
	for d := range s.devs {
		s.devs[d] = deviceState{running: none, arrive: inf, start: inf, release: inf}
		s.key[d] = never
	}
	for _, r := range s.residents {
		s.devs[device[r.op]].bytes += r.bytes
	}
	for k := range s.inboxes {
		s.inboxes[k] = inbox{inf, inf, none, none, none}
	}
	for k := range s.outboxes {
		s.outboxes[k] = outbox{inf, none, none}
	}
	clear(s.linkFree)
	s.transfers = s.transfers[:0]
	if s.fair != nil {
		*s.fair = fairState{latent: s.fair.latent[:0], flows: s.fair.flows[:0], room: s.fair.room, users: s.fair.users}
	}
	if s.sending != nil {
		s.sending.events = s.sending.events[:0]
		clear(s.sending.had)
	}
}

// resetFIFO gives each device a part of the buffer that holds all its ops.
func (s *Simulator) resetFIFO(device []uint8) {
	var count [1 << deviceBits]int32
	for _, d := range device {
		count[d]++
	}
	at := int32(0)
	for d := range s.fifos {
		s.fifos[d] = arrivalQueue{ops: s.buffer[at : at+count[d]]}
		at += count[d]
	}
}
