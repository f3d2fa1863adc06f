package anneal

import (
	"math"

	"placer/graph"
)

// jointAdviser chooses the moves of a joint walk by a guide. Letters: N ops, D devices, F
// features, M moves drawn.
type jointAdviser struct {
	j     *joint
	guide Guide        // nil: the first move drawn is made
	learn func(Judged) // nil: nobody learns
	size  int          // M

	timeline kernelTimeline
	age      int // moves judged since the timeline was made

	readers  [][]int32 // [N] that may be fused with each op
	outBytes []float64 // [N] of what each op makes
	launch   []float64 // [D] seconds of a launch
	perByte  []float64 // [D] seconds of a byte of memory traffic

	was   []uint8 // [N] devices before the move that is looked at, of ops that it stamps
	stamp []int32 // [N] the last move that placed each op
	fused []int32 // [N] the last move that fused each op
	urged []int32 // [N] the last shift that had each op
	round int32   // the move that is looked at
	shift int32   // the shift that is looked at

	moves    []jointCandidate
	devices  []jointChange // of all moves, in order, and so the next two
	fusings  []jointChange
	all      []keyShift
	shifts   []keyShift // of the move that is drawn
	x, score []float32
	chosen   int
	rejected map[uint64]struct{} // moves from where the walk is that were judged and not taken
}

// jointCandidate is a move that may be made.
type jointCandidate struct {
	m                *move
	devices, fusings [2]int // from and to in those of the adviser
	shifts           [2]int
	hash             uint64 // of what it changes to
}

// jointChange is a device or a fusion priority that changes.
type jointChange struct {
	op       int32
	old, now uint8
}

// keyShift is what a move adds to the keys of ops.
type keyShift struct {
	ops   []int32
	delta float64
}

func newJointAdviser(j *joint, g Guide, learn func(Judged)) *jointAdviser {
	n := j.p.Graph.NumOps()
	a := &jointAdviser{
		j: j, guide: g, learn: learn, size: 1, timeline: newKernelTimeline(j.p, j.rules), readers: make([][]int32, n), outBytes: make([]float64, n),
		was: make([]uint8, n), stamp: make([]int32, n), fused: make([]int32, n), urged: make([]int32, n), rejected: map[uint64]struct{}{},
	}
	if g != nil {
		a.size = drawn
	}
	a.x, a.score = make([]float32, a.size*NumJointFeatures), make([]float32, a.size)
	for _, i := range j.rules.Fusible() {
		a.readers[i] = j.rules.FusibleConsumers(i)
	}
	for i := range n {
		first, end := j.p.Graph.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			a.outBytes[i] += float64(j.p.Graph.Tensor(t).Bytes)
		}
	}
	for _, d := range j.p.Machine.Devices {
		a.launch = append(a.launch, float64(d.Launch))
		a.perByte = append(a.perByte, 1/float64(d.MemoryBandwidth))
	}
	return a
}

// choose draws moves and makes one of them. It returns its kind; where there is none that
// changes anything the walk stays where it is.
func (a *jointAdviser) choose(temperature float64) *move {
	j := a.j
	if !a.timeline.known || a.age >= oldTimeline {
		a.timeline.update(j.p, j.decision())
		a.age = 0
	}
	a.moves, a.devices, a.fusings, a.all = a.moves[:0], a.devices[:0], a.fusings[:0], a.all[:0]
	var m *move
	for tries := 0; len(a.moves) < a.size && tries < 2*a.size; tries++ {
		a.shifts = a.shifts[:0]
		m = j.draw()
		a.consider(m, temperature)
		j.undo()
	}
	if len(a.moves) == 0 {
		return m
	}
	a.chosen = a.pick()
	c := &a.moves[a.chosen]
	for _, x := range a.devices[c.devices[0]:c.devices[1]] {
		j.place(graph.OpID(x.op), x.now)
	}
	for _, x := range a.fusings[c.fusings[0]:c.fusings[1]] {
		j.fuse(x.op, x.now)
	}
	for _, x := range a.all[c.shifts[0]:c.shifts[1]] {
		j.keys.shift(x.ops, x.delta)
	}
	return c.m
}

// consider notes the move that the walk plans, unless it changes nothing or was rejected
// here.
func (a *jointAdviser) consider(m *move, temperature float64) {
	j := a.j
	c := jointCandidate{m: m, devices: [2]int{len(a.devices)}, fusings: [2]int{len(a.fusings)}, shifts: [2]int{len(a.all)}}
	mix := func(x uint64) {
		x *= 0x9e3779b97f4a7c15
		c.hash += x ^ x>>29
	}
	a.round++
	for _, x := range j.devices {
		if now := j.device[x.op]; a.stamp[x.op] != a.round {
			a.stamp[x.op], a.was[x.op] = a.round, x.old
			if now != x.old {
				a.devices = append(a.devices, jointChange{x.op, x.old, now})
				mix(uint64(x.op)<<8 | uint64(now))
			}
		}
	}
	for _, x := range j.fusings {
		if now := j.fusion[x.op]; a.fused[x.op] != a.round {
			a.fused[x.op] = a.round
			if now != x.old {
				a.fusings = append(a.fusings, jointChange{x.op, x.old, now})
				mix(1<<40 | uint64(x.op)<<8 | uint64(now))
			}
		}
	}
	for _, x := range a.shifts {
		if len(x.ops) == 0 || x.delta == 0 {
			continue
		}
		a.all = append(a.all, x)
		for _, i := range x.ops {
			mix(math.Float64bits(x.delta) + uint64(i))
		}
	}
	c.devices[1], c.fusings[1], c.shifts[1] = len(a.devices), len(a.fusings), len(a.all)
	_, known := a.rejected[c.hash]
	if known || c.devices[0] == c.devices[1] && c.fusings[0] == c.fusings[1] && c.shifts[0] == c.shifts[1] {
		a.devices, a.fusings, a.all = a.devices[:c.devices[0]], a.fusings[:c.fusings[0]], a.all[:c.shifts[0]]
		return
	}
	a.describe(&c, temperature, a.x[len(a.moves)*NumJointFeatures:][:NumJointFeatures])
	a.moves = append(a.moves, c)
}

// pick is as that of adviser.
func (a *jointAdviser) pick() int {
	if a.guide == nil {
		return 0
	}
	score := a.score[:len(a.moves)]
	a.guide.Rank(a.x[:len(score)*NumJointFeatures], score)
	return drawSoftmax(score, a.j.rng)
}

// judged takes note of what the move made has come to.
func (a *jointAdviser) judged(taken bool, before, after float64) {
	a.age++
	if a.learn != nil {
		a.learn(Judged{a.x[a.chosen*NumJointFeatures:][:NumJointFeatures], max(0, (before-after)/before)})
	}
	if taken || len(a.rejected) >= mostRejected {
		clear(a.rejected)
	}
	if !taken {
		a.rejected[a.moves[a.chosen].hash] = struct{}{}
	}
}

// moved says that the walk is elsewhere.
func (a *jointAdviser) moved() {
	clear(a.rejected)
	a.age = oldTimeline
}
