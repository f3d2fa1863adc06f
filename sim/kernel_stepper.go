package sim

import (
	"bytes"
	"math"
	"math/bits"
	"slices"

	"placer/graph/fuse"
)

// kernelStepper does for fused plans what a stepper does for others: the length of the
// step, up to a limit. What it runs are kernels, each named by its rank, the lowest of
// its ops. They are not laid out anew for each placement: a kernel that ends goes through
// the messages of its ops and leaves out what stays inside, and only kernels that moves
// have changed are made again.
type kernelStepper struct {
	stepper // its ids are the lowest ops of kernels, by rank; it knows no consumers
	fuser   *fuse.Fuser
	rank    []int32 // [N] priority of each op
	fusion  []uint8 // [N]
	holds   []int64 // [N] bytes that an op allocates at most, however it is fused, and its permanent ones
	count   int     // of kernels
	// producers of the messages that each op waits for, from[fromAt[i]:fromAt[i+1]].
	fromAt, from []int32

	head  []int32 // [N] as the fuser says, of the kernels that are made
	of    []int32 // [N] rank of each op's kernel
	after []int32 // [N] next op of the same kernel, ascending, or none
	moved []int32 // ops that have moved, have another rank, or send to other devices than when kernels were made
	stale bool    // devices or fusions are not those of head
	// By rank of the kernel: its seconds and work, whether it is, and whether it sends.
	takes  []float64
	works  []int64
	exists []bool
	sends  []bool

	dirty   []int32 // heads of kernels to make
	stamp   []int32 // [N] of heads: the last time that they were dirty
	round   int32
	members []int32
}

// newKernelStepper returns a stepper of fused plans under priority, with every op on
// device 0, before fuse says what is fused; nil if t is not what it can do.
func newKernelStepper(t *tables, priority []int32) *kernelStepper {
	step := newStepper(t, priority)
	if step == nil {
		return nil
	}
	n := t.n
	x := &kernelStepper{
		stepper: *step, fuser: fuse.NewFuser(t.rules()), rank: slices.Clone(step.rankOf), fusion: make([]uint8, n), holds: make([]int64, n),
		fromAt: make([]int32, n+1), head: make([]int32, n), of: make([]int32, n), after: make([]int32, n),
		takes: make([]float64, n), works: make([]int64, n), exists: make([]bool, n), sends: make([]bool, n), stamp: make([]int32, n),
	}
	if !x.readParts() {
		return nil
	}
	x.ids, x.remote = make([]int32, n), make([]int32, n)
	x.held = make([]held, t.d)
	l := t.layout
	for i := range n {
		x.holds[i] = l.workspace[i]
		for id := l.outAt[i]; id < l.outAt[i+1]; id++ {
			if !l.resident[id] {
				x.holds[i] += l.bytes[id]
			}
		}
	}
	for _, m := range t.residents {
		x.holds[m.op] += m.bytes
	}
	for _, b := range x.holds {
		x.held[0].bytes += b
	}
	x.layProducers()
	x.memory.of, x.memory.after = x.of, x.after
	return x
}

// readParts makes the clock fine enough for kernels; false where it cannot be.
func (x *kernelStepper) readParts() bool {
	total, shortest := 0.0, x.latency
	for i := range x.t.n {
		longest := 0.0
		for d := range x.t.d {
			p := &x.t.layout.parts[d][i]
			alone := float64(p.Compute + p.Launch)
			longest = max(longest, x.t.seconds[d][i], alone+float64(x.t.layout.traffic[i])*p.PerByte)
			shortest = min(shortest, alone)
		}
		total += longest
	}
	_, exponent := math.Frexp(total)
	x.scale = math.Ldexp(1, 60-exponent)
	largest := int64(0)
	for k := range x.t.messages {
		largest = max(largest, x.t.messages[k].size)
	}
	slowest := 0.0
	for k := range x.t.routes {
		if k%(x.t.d+1) != 0 {
			slowest = max(slowest, x.t.routes[k].seconds(largest))
		}
	}
	return shortest > math.Ldexp(total+float64(x.t.maxSends)*slowest, -50)
}

func (x *kernelStepper) layProducers() {
	t := x.t
	for k := range t.messages {
		for _, v := range t.use[t.messages[k].first:t.messages[k].end] {
			x.fromAt[v+1]++
		}
	}
	for i := range t.n {
		x.fromAt[i+1] += x.fromAt[i]
	}
	x.from = make([]int32, x.fromAt[t.n])
	next := slices.Clone(x.fromAt[:t.n])
	for k := range t.messages {
		for _, v := range t.use[t.messages[k].first:t.messages[k].end] {
			x.from[next[v]] = t.producer[k]
			next[v]++
		}
	}
}

// fuse makes all kernels anew, under fusion.
func (x *kernelStepper) fuse(fusion []uint8) {
	copy(x.fusion, fusion)
	clear(x.exists)
	for d := range x.held {
		x.held[d].work = 0
	}
	x.count, x.moved, x.stale = 0, x.moved[:0], false
	x.round++
	x.dirty = x.dirty[:0]
	heads := x.fuser.Fuse(x.given, x.fusion)
	for _, h := range heads {
		x.mark(h)
	}
	x.make(heads)
}

// change puts another priority and fusion in place of those of the kernels.
func (x *kernelStepper) change(priority []int32, fusion []uint8) {
	for i, r := range priority {
		if x.rank[i] != r {
			x.rank[i] = r
			x.moved = append(x.moved, int32(i))
		}
	}
	if !bytes.Equal(x.fusion, fusion) {
		copy(x.fusion, fusion)
		x.stale = true
	}
}

// move is as stepper.move says.
func (x *kernelStepper) move(i int32, d uint8) {
	old := x.given[i]
	if old == d {
		return
	}
	x.given[i], x.stale = d, true
	x.held[old].bytes -= x.holds[i]
	x.held[d].bytes += x.holds[i]
	x.moved = append(x.moved, i)
	remote, t := int32(0), x.t
	for m := t.first[i]; m < t.first[i+1]; m++ {
		for _, v := range t.use[t.messages[m].first:t.messages[m].end] {
			if x.given[v] != d {
				remote++
			}
		}
	}
	x.remote[i] = remote
	for _, p := range x.from[x.fromAt[i]:x.fromAt[i+1]] {
		switch x.given[p] {
		case old:
			if x.remote[p]++; x.remote[p] == 1 {
				x.moved = append(x.moved, p)
			}
		case d:
			if x.remote[p]--; x.remote[p] == 0 {
				x.moved = append(x.moved, p)
			}
		}
	}
}

// mark notes that the kernel of head h is to be made.
func (x *kernelStepper) mark(h int32) {
	if x.stamp[h] != x.round {
		x.stamp[h] = x.round
		x.dirty = append(x.dirty, h)
	}
}

// update makes the kernels that have changed.
func (x *kernelStepper) update() {
	if len(x.moved) == 0 && !x.stale {
		return
	}
	x.round++
	x.dirty = x.dirty[:0]
	heads := x.head
	if x.stale {
		heads = x.fuser.Fuse(x.given, x.fusion)
		for i, h := range heads {
			if was := x.head[i]; was != h {
				x.mark(h)
				if heads[was] == was {
					x.mark(was)
				}
			}
		}
	}
	for _, i := range x.moved {
		x.mark(heads[i])
	}
	x.moved, x.stale = x.moved[:0], false
	x.make(heads)
}

// undo takes away the kernel that op i was in.
func (x *kernelStepper) undo(i int32) {
	r := x.of[i]
	if !x.exists[r] {
		return
	}
	x.exists[r] = false
	x.held[x.start[r]&deviceMask].work -= x.works[r]
	x.count--
}

// make makes the kernels of the dirty heads, in place of all that had an op of theirs.
func (x *kernelStepper) make(heads []int32) {
	next := x.fuser.Next()
	for _, h := range x.dirty {
		x.undo(h)
		for i := next[h]; i != h; i = next[i] {
			x.undo(i)
		}
	}
	for _, h := range x.dirty {
		ops := append(x.members[:0], h)
		for i := next[h]; i != h; i = next[i] {
			ops = append(ops, i)
		}
		slices.Sort(ops)
		x.members = ops
		r, waits, sends := x.rank[h], uint32(0), false
		for k, i := range ops {
			r = min(r, x.rank[i])
			sends = sends || x.remote[i] > 0
			for _, p := range x.from[x.fromAt[i]:x.fromAt[i+1]] {
				if heads[p] != h {
					waits++
				}
			}
			x.after[i] = none
			if k > 0 {
				x.after[ops[k-1]] = i
			}
		}
		for _, i := range ops {
			x.of[i] = r
		}
		d := int(x.given[h])
		x.ids[r], x.sends[r], x.exists[r] = ops[0], sends, true
		x.takes[r] = x.t.kernelSeconds(heads, h, ops, d)
		x.works[r] = int64(x.takes[r] * x.scale)
		x.start[r] = waits<<deviceBits | uint32(d)
		x.held[d].work += x.works[r]
		x.count++
	}
	copy(x.head, heads)
}

// run is as stepper.run says, of kernels.
func (x *kernelStepper) run(limit float64) (makespan float64, ok bool) {
	x.update()
	if !x.rewind(limit) {
		return 0, false
	}
	for _, i := range x.t.sources {
		if r := x.of[i]; x.waits[r] < 1<<deviceBits {
			x.wake(r)
		}
	}
	for {
		d, key := x.next()
		if key == never {
			break
		}
		x.key[d] = never
		if !x.advance(d, math.Float64frombits(key), math.Float64frombits(x.earliest())) {
			return 0, false
		}
	}
	return x.ended(x.count), true
}

// advance is as stepper.advance says, of kernels.
func (x *kernelStepper) advance(d int, t, other float64) bool {
	dev, q := &x.devs[d], &x.queues[d]
	running, since, horizon := dev.running, dev.since, other+x.latency
	for {
		if dev.arrive <= t {
			x.arrivals(d, t, x.receive)
		}
		best, sent := int32(empty), false
		if running != none {
			since, sent = t, x.sends[running]
			best = x.complete(d, running, t)
		}
		if q.lowest < best {
			if best != empty {
				q.push(best)
			}
			best = q.pop()
		}
		if best == empty {
			running, t = none, dev.arrive
		} else {
			if since < t {
				if dev.slack -= t - since; dev.slack < 0 {
					return false
				}
			}
			x.order[x.started] = best
			x.started++
			running, t = best, t+x.takes[best]
			if x.sends[best] && t >= other {
				break
			}
		}
		if sent || t >= horizon {
			break
		}
	}
	dev.running, dev.since = running, since
	x.key[d] = math.Float64bits(t)
	return true
}

// complete ends kernel r, which device d runs, and returns the lowest rank of those that
// it makes ready, which it does not queue. Those that wait for any of its ops by control
// dependency get one message together.
func (x *kernelStepper) complete(d int, r int32, t float64) (best int32) {
	best = empty
	waits, of, q, use := x.waits, x.of, &x.queues[d], x.t.use
	control := uint64(0)
	for i := x.ids[r]; i != none; i = x.after[i] {
		for m := x.t.first[i]; m < x.t.first[i+1]; m++ {
			message := &x.t.messages[m]
			remote := uint64(0)
			for _, v := range use[message.first:message.end] {
				k := of[v]
				if k == r {
					continue
				}
				y := waits[k]
				if e := int(y & deviceMask); e != d {
					remote |= 1 << e
					continue
				}
				y -= 1 << deviceBits
				if waits[k] = y; y < 1<<deviceBits {
					best = q.take(k, best)
				}
			}
			if message.tensor == none {
				control |= remote
				continue
			}
			for ; remote != 0; remote &= remote - 1 {
				x.send(x.size(message, r), m, d, bits.TrailingZeros64(remote), t)
			}
		}
	}
	for ; control != 0; control &= control - 1 {
		x.send(0, ^r, d, bits.TrailingZeros64(control), t)
	}
	return best
}

// size returns the bytes of a message of kernel r: none where the tensor stays inside and
// others read its shape alone.
func (x *kernelStepper) size(m *message, r int32) int64 {
	inside := false
	for _, v := range x.t.use[m.first:m.end] {
		if x.of[v] == r {
			inside = true
		} else if !x.t.layout.readsShape[v] {
			return m.size
		}
	}
	if inside {
		return 0
	}
	return m.size
}

// receive counts message m, or the control messages of kernel ^m, for those on device d.
func (x *kernelStepper) receive(d int, m int32) {
	if m >= 0 {
		x.countFor(d, &x.t.messages[m])
		return
	}
	for i := x.ids[^m]; i != none; i = x.after[i] {
		if last := x.t.first[i+1] - 1; last >= x.t.first[i] && x.t.messages[last].tensor == none {
			x.countFor(d, &x.t.messages[last])
		}
	}
}

// countFor counts message m for the kernels that wait for it on device d.
func (x *kernelStepper) countFor(d int, m *message) {
	for _, v := range x.t.use[m.first:m.end] {
		k := x.of[v]
		y := x.waits[k]
		if int(y&deviceMask) != d {
			continue
		}
		y -= 1 << deviceBits
		if x.waits[k] = y; y < 1<<deviceBits {
			x.queues[d].push(k)
		}
	}
}
