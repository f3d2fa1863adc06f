package throughput

import (
	"slices"

	"placer/graph"
	"placer/graph/fuse"
)

// The memory of a pipeline in steady state (docs/memory.md).
//
// Time is divided into periods, one for each sample that enters. An op has a level:
// in period k it runs for sample k - level. Ops of one level of a device work on one
// sample; between ops on different devices lies a period at least, in which the
// tensor crosses. Levels are the lowest that allow this; an op that makes as much as
// it reads, or more, runs as late as its readers allow instead. In a period a device
// runs the ops of high levels first, that is the oldest sample, and within a level in
// the graph's order.
//
// A tensor is on its device from the start of its op to the end of its last reader
// there, and to the end of that period if another device reads it. On the other
// device it is from the start of the period in which it crosses to the end of its
// last reader there. Where a tensor lives for longer than a period there are several
// of it at once, for samples that follow one another. A view occupies
// nothing and keeps its input alive instead. Resident bytes count once.

// pipeline counts what the devices of a placement hold. What depends on the placement
// is scratch; the rest does not change, so clones share it.
type pipeline struct {
	g *graph.Graph
	d int
	// late ops, [N], make at least as many bytes as they read.
	late []bool
	// view is the tensor whose memory a tensor shares, [T], or none.
	view []graph.TensorID
	// recvAt is where the copies of each tensor on other devices begin, [T+1], as many
	// as it has readers but at most D-1.
	recvAt []int32

	level []int32  // [N]
	slot  []int32  // [N] place of an op in its device's period
	slots []int32  // [D] ops of each device
	first []int32  // [D+1] where a device's slots begin in change
	order []int32  // [N] ops by falling level
	count []int32  // [levels]
	home  []buffer // [T] where a tensor was made
	holds []int32  // [T] the buffer that a tensor is in where it was made: home, or T + copy
	recv  []buffer // copies on other devices
	on    []int16  // device of each copy, or none
	delta []int64  // [N+D] changes of what a device holds from slot to slot
	base  []int64  // [D] held all the time
	peak  []int64  // [D]
	work  []int64  // [N+D] workspace of the op in each slot
}

// buffer is memory from the slot in which it is allocated to the last in which it is
// read, both counted from the start of period 0 of its device.
type buffer struct{ from, until int64 }

const none = -1

func newPipeline(g *graph.Graph, devices int) *pipeline {
	n, t := g.NumOps(), g.NumTensors()
	p := &pipeline{g: g, d: devices, view: fuse.Views(g), late: make([]bool, n), recvAt: make([]int32, t+1)}
	for i := range graph.OpID(n) {
		var reads, makes int64
		inputs := g.Inputs(i)
		for k, in := range inputs {
			if x := g.Tensor(in); !x.Resident && !slices.Contains(inputs[:k], in) {
				reads += int64(x.Bytes)
			}
		}
		first, end := g.Outputs(i)
		for o := first; o < end; o++ {
			if x := g.Tensor(o); !x.Resident {
				makes += int64(x.Bytes)
			}
			p.recvAt[o+1] = p.recvAt[o] + int32(min(len(g.Consumers(o)), devices-1))
		}
		p.late[i] = makes >= reads
	}
	return p.clone()
}

// clone returns a pipeline for another goroutine.
func (p *pipeline) clone() *pipeline {
	q := *p
	n, t := len(p.late), len(p.recvAt)-1
	q.level, q.slot, q.order = make([]int32, n), make([]int32, n), make([]int32, n)
	q.slots, q.first, q.base, q.peak = make([]int32, p.d), make([]int32, p.d+1), make([]int64, p.d), make([]int64, p.d)
	q.count = make([]int32, n+1)
	q.home, q.holds = make([]buffer, t), make([]int32, t)
	q.recv, q.on = make([]buffer, p.recvAt[t]), make([]int16, p.recvAt[t])
	q.delta, q.work = make([]int64, n+p.d), make([]int64, n+p.d)
	return &q
}

// peaks returns the peak bytes of each device under a placement of the ops, [N]; they
// hold until the next call.
func (p *pipeline) peaks(device []uint8) []int64 {
	p.levels(device)
	p.arrange(device)
	p.lifetimes(device)
	clear(p.delta)
	clear(p.work)
	clear(p.base)
	for i := range device {
		d, o := device[i], p.g.Op(graph.OpID(i))
		p.base[d] += int64(o.Resident)
		p.work[p.first[d]+p.slot[i]] = int64(o.Workspace)
		first, end := p.g.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			bytes := int64(p.g.Tensor(t).Bytes)
			if !p.g.Tensor(t).Resident && p.holds[t] == int32(t) {
				p.hold(d, p.home[t], bytes)
			}
			for k := p.recvAt[t]; k < p.recvAt[t+1] && p.on[k] != none; k++ {
				p.hold(uint8(p.on[k]), p.recv[k], bytes)
			}
		}
	}
	for d := range p.peak {
		held := p.base[d]
		p.peak[d] = held
		for k := p.first[d]; k < p.first[d+1]-1; k++ {
			held += p.delta[k]
			p.peak[d] = max(p.peak[d], held+p.work[k])
		}
	}
	return p.peak
}

// levels sets the level of every op. Ops are in topological order.
func (p *pipeline) levels(device []uint8) {
	apart := func(a, b graph.OpID) int32 {
		if device[a] != device[b] {
			return 1
		}
		return 0
	}
	n := graph.OpID(len(device))
	for i := range n {
		l := int32(0)
		for _, t := range p.g.Inputs(i) {
			u := p.g.Tensor(t).Producer
			l = max(l, p.level[u]+apart(u, i))
		}
		for _, u := range p.g.Control(i) {
			l = max(l, p.level[u]+apart(u, i))
		}
		p.level[i] = l
	}
	// What waits for an op by control dependency is not listed with it: latest is the
	// level that such ops allow, in the memory of order, which is set later.
	latest := p.order
	for i := range latest {
		latest[i] = int32(n)
	}
	for i := n - 1; i >= 0; i-- {
		if p.late[i] {
			l, read := latest[i], latest[i] < int32(n)
			first, end := p.g.Outputs(i)
			for t := first; t < end; t++ {
				for _, v := range p.g.Consumers(t) {
					l, read = min(l, p.level[v]-apart(i, v)), true
				}
			}
			if read {
				p.level[i] = l
			}
		}
		for _, u := range p.g.Control(i) {
			latest[u] = min(latest[u], p.level[i]-apart(u, i))
		}
	}
}

// arrange gives every op its slot: by falling level, then by id.
func (p *pipeline) arrange(device []uint8) {
	clear(p.count)
	for _, l := range p.level {
		p.count[l]++
	}
	at := int32(0)
	for l := len(p.count) - 1; l >= 0; l-- {
		p.count[l], at = at, at+p.count[l]
	}
	for i, l := range p.level {
		p.order[p.count[l]] = int32(i)
		p.count[l]++
	}
	clear(p.slots)
	for _, i := range p.order {
		d := device[i]
		p.slot[i] = p.slots[d]
		p.slots[d]++
	}
	for d, n := range p.slots {
		p.first[d+1] = p.first[d] + n + 1
	}
}

// at returns the slot of op i on its device, from the start of period 0.
func (p *pipeline) at(i graph.OpID, d uint8) int64 {
	return int64(p.level[i])*int64(p.slots[d]) + int64(p.slot[i])
}

// lifetimes sets the buffers.
func (p *pipeline) lifetimes(device []uint8) {
	for k := range p.on {
		p.on[k] = none
	}
	for i := range graph.OpID(len(device)) {
		d := device[i]
		now := p.at(i, d)
		for _, t := range p.g.Inputs(i) {
			p.buffer(p.find(t, d, device)).extend(now)
		}
		first, end := p.g.Outputs(i)
		for t := first; t < end; t++ {
			p.home[t], p.holds[t] = buffer{now, now}, int32(t)
			if x := p.view[t]; x != none {
				p.holds[t] = p.find(x, d, device)
			}
			period := int64(p.level[i]) * int64(p.slots[d])
			for _, v := range p.g.Consumers(t) {
				e := device[v]
				if e == d {
					continue
				}
				// It leaves by the end of the period, and arrives from its start on.
				p.buffer(p.holds[t]).extend(period + int64(p.slots[d]) - 1)
				k := p.recvAt[t]
				for p.on[k] != none && p.on[k] != int16(e) {
					k++
				}
				if p.on[k] == none {
					start := int64(p.level[i]) * int64(p.slots[e])
					p.on[k], p.recv[k] = int16(e), buffer{start, start}
				}
			}
		}
	}
}

// find returns the buffer of tensor t on device d: where it was made, or the copy
// there.
func (p *pipeline) find(t graph.TensorID, d uint8, device []uint8) int32 {
	if device[p.g.Tensor(t).Producer] == d {
		return p.holds[t]
	}
	k := p.recvAt[t]
	for p.on[k] != int16(d) {
		k++
	}
	return int32(len(p.home)) + k
}

func (p *pipeline) buffer(k int32) *buffer {
	if int(k) < len(p.home) {
		return &p.home[k]
	}
	return &p.recv[int(k)-len(p.home)]
}

func (b *buffer) extend(until int64) { b.until = max(b.until, until) }

// hold adds a buffer of device d to what it holds.
func (p *pipeline) hold(d uint8, b buffer, bytes int64) {
	slots := int64(p.slots[d])
	length := b.until - b.from + 1
	p.base[d] += bytes * (length / slots)
	rest := length % slots
	if rest == 0 {
		return
	}
	from := b.from % slots
	at := p.delta[p.first[d]:p.first[d+1]]
	if end := from + rest; end <= slots {
		at[from] += bytes
		at[end] -= bytes
	} else {
		at[from] += bytes
		at[0] += bytes
		at[end-slots] -= bytes
	}
}
