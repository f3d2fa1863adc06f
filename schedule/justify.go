package schedule

import (
	"container/heap"
	"slices"

	"placer/graph"
	"placer/plan"
	"placer/sim"
)

// Justified returns the priority, [N], in which kernels begin when the step of d, which must
// be valid for p, runs backwards: from its end, what ended last first, each on its device
// after all that reads it, transfers over free links. So kernels are put off that the step
// can wait for, and the others come first: right justification (Li and Willis, EJOR 56,
// 1992; Valls et al., EJOR 165, 2005), here under list scheduling in both directions.
//
// It costs a simulation of d's step and as much as some evaluations besides. Where p knows
// no kernels it is PlacedCriticalPath.
func Justified(p *plan.Problem, d plan.Decision) []int32 {
	if p.Kernels == nil {
		return PlacedCriticalPath(p, d.Device)
	}
	b := newBackward(p, d)
	b.run()
	return sim.RankByKey(b.key)
}

// backward is a step that runs backwards. Letters: N ops, K kernels, D devices. Times are
// seconds from the end of the step.
type backward struct {
	p      *plan.Problem
	device []uint8        // [N]
	kernel []int32        // [N]
	ops    [][]graph.OpID // [K] those of each kernel, ascending
	takes  []float64      // [K]
	ends   []float64      // [K] when each ends forwards, in seconds from the start of the step
	waits  []int32        // [K] what its ops are read by, or waited for, elsewhere that has not run yet
	ready  []float64      // [K] when the last of these has been there
	key    []float64      // [N] less, the earlier the op begins forwards in this step
	events agenda         // of kernels that end, or become ready
	queues []agenda       // [D] kernels that are ready, what ended last first
	busy   []bool         // [D]
}

func newBackward(p *plan.Problem, d plan.Decision) *backward {
	n := p.Graph.NumOps()
	costs, starts := p.Kernels(), make([]float64, n)
	costs.Timeline(&plan.Plan{Decision: d}, make([]bool, n), make([]float64, n), starts)
	b := &backward{p: p, device: d.Device, key: make([]float64, n), queues: make([]agenda, p.Machine.NumDevices()), busy: make([]bool, p.Machine.NumDevices())}
	if d.Fusion == nil {
		for v, device := range d.Device {
			b.kernel = append(b.kernel, int32(v))
			b.takes = append(b.takes, p.Evaluator.OpSeconds(int(device))[v])
		}
	} else {
		kernel, takes := costs.Fuse(d.Device, d.Fusion)
		b.kernel, b.takes = slices.Clone(kernel), slices.Clone(takes)
	}
	k := len(b.takes)
	b.ops, b.ends, b.waits, b.ready = make([][]graph.OpID, k), make([]float64, k), make([]int32, k), make([]float64, k)
	for i, c := range b.kernel {
		v := graph.OpID(i)
		b.ops[c] = append(b.ops[c], v)
		b.ends[c] = starts[v] + b.takes[c]
		b.before(v, func(before graph.OpID, _ float64) { b.waits[b.kernel[before]]++ })
	}
	return b
}

// on returns the device of kernel c.
func (b *backward) on(c int32) uint8 { return b.device[b.ops[c][0]] }

// before calls f for what op v waits for in other kernels, once for each tensor, with what its
// transfer takes.
func (b *backward) before(v graph.OpID, f func(before graph.OpID, transfer float64)) {
	g := b.p.Graph
	see := func(u graph.OpID, bytes float64) {
		if b.kernel[u] == b.kernel[v] {
			return
		}
		transfer := 0.0
		if from, to := b.device[u], b.device[v]; from != to {
			latency, bandwidth := b.p.Machine.Transfer(int(from), int(to))
			transfer = float64(latency) + bytes/float64(bandwidth)
		}
		f(u, transfer)
	}
	for _, t := range g.Inputs(v) {
		see(g.Tensor(t).Producer, float64(g.Tensor(t).Bytes))
	}
	for _, u := range g.Control(v) {
		see(u, 0)
	}
}

// run makes the schedule.
func (b *backward) run() {
	for c, waits := range b.waits {
		if waits == 0 {
			b.events = append(b.events, entry{kernel: int32(c)})
		}
	}
	heap.Init(&b.events)
	for len(b.events) > 0 {
		now := b.events[0].key
		touched := uint64(0) // devices
		for len(b.events) > 0 && b.events[0].key == now {
			e := heap.Pop(&b.events).(entry)
			on := b.on(e.kernel)
			touched |= 1 << on
			if e.ends {
				b.busy[on] = false
				b.complete(e.kernel, now)
			} else {
				heap.Push(&b.queues[on], entry{key: -b.ends[e.kernel], kernel: e.kernel})
			}
		}
		for on := range b.queues {
			if touched>>on&1 != 0 && !b.busy[on] && len(b.queues[on]) > 0 {
				b.begin(heap.Pop(&b.queues[on]).(entry).kernel, now)
			}
		}
	}
}

// begin runs kernel c from now on.
func (b *backward) begin(c int32, now float64) {
	end := now + b.takes[c]
	for _, v := range b.ops[c] {
		b.key[v] = -end
	}
	b.busy[b.on(c)] = true
	heap.Push(&b.events, entry{key: end, kernel: c, ends: true})
}

// complete makes ready what waited for kernel c alone, which ends now.
func (b *backward) complete(c int32, now float64) {
	for _, v := range b.ops[c] {
		b.before(v, func(before graph.OpID, transfer float64) {
			k := b.kernel[before]
			b.ready[k] = max(b.ready[k], now+transfer)
			if b.waits[k]--; b.waits[k] == 0 {
				heap.Push(&b.events, entry{key: b.ready[k], kernel: k})
			}
		})
	}
}

// entry is a kernel of an agenda: one that ends at the instant key, or becomes ready then; or
// one that is ready, by key.
type entry struct {
	key    float64
	kernel int32
	ends   bool
}

// agenda is a heap of entries, the least key first, of equal ones the lowest kernel.
type agenda []entry

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	if a[i].key != a[j].key {
		return a[i].key < a[j].key
	}
	return a[i].kernel < a[j].kernel
}

func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is as heap.Interface says.
func (a *agenda) Push(x any) { *a = append(*a, x.(entry)) }

// Pop is as heap.Interface says.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}
