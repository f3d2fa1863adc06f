package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
)

// stepTables is what a stepper knows of a graph under one priority, and how the
// placement divides it. Ops are numbered by rank.
type stepTables struct {
	rankOf  []int32     // [N] of each op
	ids     []int32     // [N] op of each rank
	sources []int32     // ops that wait for nothing
	ops     []stepOp    // [N+1]; a last row ends the last op's consumers; a stepper has its own
	remote  []int32     // [N] consumers on other devices; a stepper has its own
	times   []float64   // that ops take, each once
	seconds [][]float64 // [D], times on each device; nil where they are the same
	// consumers of all messages of each op, one after another, and the producers of the
	// messages that each op waits for, producers[producersAt[r]:producersAt[r+1]].
	consumers              []int32
	producersAt, producers []int32
	// program holds the messages of each op, from programAt on, [N+1]: one with a single
	// consumer v is the one word ^v, any other is its number of consumers and these.
	programAt, program []int32
	bytes              []int64 // [N] permanent, and all that the op ever allocates where it runs
	latency            float64 // shortest of a route
	scale              float64 // held.work of a second
	rounding           float64 // share by which the loop's clock may be off
}

// stepOp is what the loop needs of an op.
type stepOp struct {
	consumers int32  // where they start
	time      uint32 // its place in times << 1 | whether a consumer is on another device
}

// sends reports whether the op sends something to another device.
func (o stepOp) sends() bool { return o.time&1 != 0 }

// held is what the placement gives a device.
type held struct {
	// work is the time of its ops, each rounded down to a whole number, so that it does
	// not drift as ops come and go.
	work  int64
	bytes int64 // of its ops
}

// stepCache keeps the tables under the priority that was last asked for: steppers of one
// search have them in common.
type stepCache struct {
	mu   sync.Mutex
	last *stepTables // nil: none, or no stepper can do it
	of   []int32     // priority
}

// under returns what steppers of t under priority, [N], have in common, for reading; nil
// if t is not what they can do.
func (c *stepCache) under(t *tables, priority []int32) *stepTables {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || !slices.Equal(c.of, priority) {
		c.last, c.of = newStepTables(t, priority), slices.Clone(priority)
	}
	return c.last
}

// newStepper returns a stepper under priority, [N], with every op on device 0; nil if
// t is not what it can do.
func newStepper(t *tables, priority []int32) *stepper {
	if t.cfg.Contention != FIFO || t.receipts != nil || priority == nil {
		return nil
	}
	common := t.steps.under(t, priority)
	if common == nil {
		return nil
	}
	n := t.n
	x := &stepper{
		t: t, stepTables: *common, held: make([]held, t.d), given: make([]uint8, n), waits: make([]uint32, n), start: make([]uint32, n),
		devs: make([]stepDevice, t.d), queues: make([]rankQueue, t.d), transfers: make([]stepTransfer, 0, t.maxSends),
		inboxes: make([]stepInbox, t.inboxAt[t.d]), linkFree: make([]float64, len(t.m.Links)), order: make([]int32, n),
	}
	x.memory = memoryBound{t: t, device: x.given}
	x.ops, x.remote = slices.Clone(common.ops), make([]int32, n)
	for d := range x.queues {
		x.queues[d] = newRankQueue(n)
	}
	for d := range x.key {
		x.key[d] = never
	}
	for r, i := range x.ids {
		x.start[r] = t.pending[i]
		x.held[0].work += x.work(0, int32(r))
		x.held[0].bytes += x.bytes[r]
	}
	return x
}

// newStepTables returns the tables of t under priority, [N], with every op on device 0.
func newStepTables(t *tables, priority []int32) *stepTables {
	n := t.n
	x := &stepTables{
		rankOf: append([]int32(nil), priority...), ids: make([]int32, n), ops: make([]stepOp, n+1), bytes: make([]int64, n),
		consumers: make([]int32, 0, len(t.use)), producersAt: make([]int32, n+1), producers: make([]int32, len(t.use)),
		programAt: make([]int32, n+1), program: make([]int32, 0, len(t.use)+len(t.messages)),
	}
	for r := range x.ids {
		x.ids[r] = none
	}
	for i, r := range priority {
		if r < 0 || int(r) >= n || x.ids[r] != none {
			panic(fmt.Sprintf("sim: the priorities are no permutation: %d of op %d", r, i))
		}
		x.ids[r] = int32(i)
	}
	if !x.readTimes(t) {
		return nil
	}
	x.layConsumers(t)
	for i := range n {
		x.bytes[x.rankOf[i]] = t.ops[i].alloc
	}
	for _, m := range t.residents {
		x.bytes[x.rankOf[m.op]] += m.bytes
	}
	return x
}

// readTimes reads the times of ops and reports whether none vanishes in the clock.
func (x *stepTables) readTimes(t *tables) bool {
	total, shortest := 0.0, inf
	x.layTimes(t)
	for i := range t.n {
		longest := 0.0
		for d := range t.d {
			seconds := t.seconds[d][i]
			longest, shortest = max(longest, seconds), min(shortest, seconds)
		}
		total += longest
	}
	_, exponent := math.Frexp(total)
	x.scale = math.Ldexp(1, 60-exponent)
	x.rounding = math.Ldexp(float64(t.n), -50)
	x.latency = inf
	largest := int64(0)
	for k := range t.messages {
		largest = max(largest, t.messages[k].size)
	}
	slowest := 0.0
	for s := range t.d {
		for e := range t.d {
			if r := &t.routes[s*t.d+e]; s != e {
				x.latency, slowest = min(x.latency, r.latency), max(slowest, r.seconds(largest))
			}
		}
	}
	clock := total + float64(t.maxSends)*slowest
	return min(shortest, x.latency) > math.Ldexp(clock, -50)
}

// layTimes lists the times of ops: an op whose times are another's shares its place.
func (x *stepTables) layTimes(t *tables) {
	places := map[string]uint32{}
	if !t.equal {
		x.seconds = make([][]float64, t.d)
	}
	var key []byte
	for r, i := range x.ids {
		key = key[:0]
		for _, column := range t.seconds[:max(1, len(x.seconds))] {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(column[i]))
		}
		place, ok := places[string(key)]
		if !ok {
			place = uint32(len(x.times))
			places[string(key)] = place
			x.times = append(x.times, t.seconds[0][i])
			for d := range x.seconds {
				x.seconds[d] = append(x.seconds[d], t.seconds[d][i])
			}
		}
		x.ops[r].time = place << 1
	}
}

// layConsumers writes who reads what of whom.
func (x *stepTables) layConsumers(t *tables) {
	for r, i := range x.ids {
		x.ops[r].consumers, x.programAt[r] = int32(len(x.consumers)), int32(len(x.program))
		for _, m := range t.messages[t.first[i]:t.first[i+1]] {
			from := len(x.consumers)
			for _, v := range t.use[m.first:m.end] {
				x.consumers = append(x.consumers, x.rankOf[v])
				x.producersAt[x.rankOf[v]]++
			}
			if users := x.consumers[from:]; len(users) == 1 {
				x.program = append(x.program, ^users[0])
			} else {
				x.program = append(append(x.program, int32(len(users))), users...)
			}
		}
	}
	x.ops[t.n].consumers, x.programAt[t.n] = int32(len(x.consumers)), int32(len(x.program))
	for _, i := range t.sources {
		x.sources = append(x.sources, x.rankOf[i])
	}
	at := int32(0)
	for r := range x.producersAt {
		at += x.producersAt[r]
		x.producersAt[r] = at
	}
	for r := range x.ids {
		for _, v := range x.consumers[x.ops[r].consumers:x.ops[r+1].consumers] {
			x.producersAt[v]--
			x.producers[x.producersAt[v]] = int32(r)
		}
	}
}

// work returns the time of the op of rank r on device d as a whole number.
func (x *stepper) work(d int, r int32) int64 {
	return int64(x.t.takes(d, x.ids[r]) * x.scale)
}

// move puts op i on device d.
func (x *stepper) move(i int32, d uint8) {
	r := x.rankOf[i]
	from, to := x.start[r]&deviceMask, uint32(d)
	if from == to {
		return
	}
	x.held[from].work -= x.work(int(from), r)
	x.held[to].work += x.work(int(to), r)
	x.held[from].bytes -= x.bytes[r]
	x.held[to].bytes += x.bytes[r]
	x.start[r] += to - from
	x.given[i] = d
	remote := int32(0)
	for _, v := range x.consumers[x.ops[r].consumers:x.ops[r+1].consumers] {
		if x.start[v]&deviceMask != to {
			remote++
		}
	}
	x.setRemote(r, remote)
	for _, p := range x.producers[x.producersAt[r]:x.producersAt[r+1]] {
		switch x.start[p] & deviceMask {
		case from:
			x.setRemote(p, x.remote[p]+1)
		case to:
			x.setRemote(p, x.remote[p]-1)
		}
	}
}

// setRemote sets how many consumers of the op of rank r are on other devices.
func (x *stepper) setRemote(r, n int32) {
	x.remote[r] = n
	x.ops[r].time = x.ops[r].time&^1 | uint32(min(n, 1))
}

// fits reports whether the step just run is known to fit: all that a device ever
// receives at once, and all that its ops ever allocate, or else by memoryBound.
func (x *stepper) fits() bool { return x.fitsAtOnce() || x.fitsInOrder() }

func (x *stepper) fitsInOrder() bool {
	b := &x.memory
	b.begin(x.devs)
	for _, r := range x.order[:x.started] {
		if !b.run(x.ids[r]) {
			return false
		}
	}
	return true
}

func (x *stepper) fitsAtOnce() bool {
	for d := range x.held {
		if x.held[d].bytes+x.devs[d].received > int64(x.t.m.Devices[d].Memory) {
			return false
		}
	}
	return true
}

// clear removes all ranks.
func (q *rankQueue) clear() {
	q.lowest = empty
	clear(q.bit)
	clear(q.word)
	clear(q.block)
}
