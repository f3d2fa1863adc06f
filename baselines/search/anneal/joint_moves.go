package anneal

import (
	"math"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/plan"
)

// move is a kind of move of the joint walk, with its recent success.
type move struct {
	kind       int // of jointKinds
	do         func(*joint)
	tried, won float64
}

func (m *move) tell(won float64) {
	m.tried++
	m.won += won
	if m.tried > 64 {
		m.tried, m.won = m.tried/2, m.won/2
	}
}

// jointKinds is the number of kinds of moves of the joint walk.
const jointKinds = 8

// kinds returns the kinds of moves for the tasks of the problem.
func (j *joint) kinds() (ms []*move) {
	kind := 0
	add := func(task plan.Tasks, possible bool, fs ...func(*joint)) {
		for _, f := range fs {
			if j.p.Decides(task) && possible {
				ms = append(ms, &move{kind: kind, do: f})
			}
			kind++
		}
	}
	add(plan.Place, j.p.Machine.NumDevices() > 1, (*joint).placeUnit, (*joint).placeBorder)
	add(plan.Schedule, true, (*joint).shiftUnit, (*joint).shiftOp, (*joint).passOp)
	add(plan.Fuse, len(j.rules.Fusible()) > 0, (*joint).fuseOp, (*joint).fuseUnit, (*joint).fusePattern)
	return ms
}

// pick chooses a kind of move by its success, with a floor for each.
func (j *joint) pick() *move {
	sum := 0.0
	for _, m := range j.moves {
		sum += chance(m)
	}
	x := j.rng.Float64() * sum
	for _, m := range j.moves {
		if x -= chance(m); x < 0 {
			return m
		}
	}
	return j.moves[len(j.moves)-1]
}

func chance(m *move) float64 { return 0.02 + (m.won+0.5)/(m.tried+4) }

// someUnit returns the ops of a random unit of a random level below the whole.
func (j *joint) someUnit() []graph.OpID {
	l := unit.Level(j.rng.IntN(int(unit.NumLevels)))
	p := j.p.Units.Levels[l]
	return p.Ops[j.rng.IntN(p.NumUnits())]
}

// place sends op i to device d.
func (j *joint) place(i graph.OpID, d uint8) {
	if old := j.device[i]; old != d {
		j.devices = append(j.devices, byteChange{int32(i), old})
		j.device[i] = d
	}
}

// placeUnit sends a unit, sometimes with its counterpart of the other direction, to
// some device.
func (j *joint) placeUnit() {
	l := unit.Level(j.rng.IntN(int(unit.NumLevels)))
	p := j.p.Units.Levels[l]
	u := j.rng.IntN(p.NumUnits())
	d := uint8(j.rng.IntN(j.p.Machine.NumDevices()))
	for _, i := range p.Ops[u] {
		j.place(i, d)
	}
	if ps := j.p.Units.Counterparts[l]; ps != nil && ps[u] >= 0 && j.rng.IntN(2) == 0 {
		for _, i := range p.Ops[ps[u]] {
			j.place(i, d)
		}
	}
}

// placeBorder looks for a tensor that crosses devices and sends the unit of one
// of its ends to the device of the other.
func (j *joint) placeBorder() {
	g := j.p.Graph
	for range 32 {
		v := graph.OpID(j.rng.IntN(g.NumOps()))
		in := g.Inputs(v)
		if len(in) == 0 {
			continue
		}
		u := g.Tensor(in[j.rng.IntN(len(in))]).Producer
		if j.device[u] == j.device[v] {
			continue
		}
		p := j.p.Units.Levels[unit.Level(j.rng.IntN(int(unit.Segment)+1))]
		if j.rng.IntN(2) == 0 {
			u, v = v, u
		}
		d := j.device[v]
		for _, i := range p.Ops[p.Of[u]] {
			j.place(i, d)
		}
		return
	}
}

// delta draws a change of keys, small ones as often as large ones.
func (j *joint) delta() float64 {
	x := math.Pow(float64(len(j.device)), j.rng.Float64()) * 0.6
	if j.rng.IntN(2) == 0 {
		return -x
	}
	return x
}

// shift adds delta to the keys of ops, or notes that a move would.
func (j *joint) shift(ops []int32, delta float64) {
	if j.adviser != nil {
		j.adviser.shifts = append(j.adviser.shifts, keyShift{ops, delta})
		return
	}
	j.keys.shift(ops, delta)
}

// shiftUnit makes a unit more urgent, or less.
func (j *joint) shiftUnit() {
	ops := j.someUnit()
	list := make([]int32, len(ops))
	for k, i := range ops {
		list[k] = int32(i)
	}
	j.shift(list, j.delta())
}

// shiftOp makes one op more urgent, or less.
func (j *joint) shiftOp() {
	j.shift([]int32{int32(j.rng.IntN(len(j.device)))}, j.delta())
}

// mostAncestors bounds what passOp takes along.
const mostAncestors = 32

// passOp makes an op, and what it reads on its device, just more urgent than one
// that was up to some hundred places before it there.
func (j *joint) passOp() {
	k := j.keys
	i := int32(j.rng.IntN(len(j.device)))
	r, target := int(k.rank[i]), int32(-1)
	reach := 1 + int(math.Pow(512, j.rng.Float64()))
	for q := r - 1; q >= 0 && reach > 0; q-- {
		if o := k.order[q]; j.device[o] == j.device[i] {
			target, reach = o, reach-1
		}
	}
	if target < 0 {
		return
	}
	list := []int32{i}
	for at := 0; at < len(list) && len(list) < mostAncestors; at++ {
		for _, t := range j.p.Graph.Inputs(graph.OpID(list[at])) {
			u := int32(j.p.Graph.Tensor(t).Producer)
			if j.device[u] == j.device[i] && k.rank[u] > k.rank[target] && !slices.Contains(list, u) {
				list = append(list, u)
			}
		}
	}
	j.shift(list, k.key[target]-k.key[i]-0.5)
}

// fusionLevels are the fusion priorities that moves give, never among them.
const fusionLevels = 8

// fuse gives op i a fusion priority.
func (j *joint) fuse(i int32, level uint8) {
	if old := j.fusion[i]; old != level {
		j.fusings = append(j.fusings, byteChange{i, old})
		j.fusion[i] = level
	}
}

// level draws a fusion priority other than old.
func (j *joint) level(old uint8) uint8 {
	if old != fuse.Never && j.rng.IntN(3) == 0 {
		return fuse.Never
	}
	for {
		if l := uint8(j.rng.IntN(fusionLevels)); l != old {
			return l
		}
	}
}

// fuseOp changes the fusion priority of one op.
func (j *joint) fuseOp() {
	fusible := j.rules.Fusible()
	i := fusible[j.rng.IntN(len(fusible))]
	j.fuse(i, j.level(j.fusion[i]))
}

// fuseUnit gives what can be fused in a unit one fusion priority.
func (j *joint) fuseUnit() {
	ops := j.someUnit()
	level := j.level(j.fusion[ops[j.rng.IntN(len(ops))]])
	for _, i := range ops {
		if j.patterns.of[i] >= 0 {
			j.fuse(int32(i), level)
		}
	}
}

// fusePattern gives one fusion priority to the ops of one pattern, everywhere or
// in one unit.
func (j *joint) fusePattern() {
	fusible := j.rules.Fusible()
	i := fusible[j.rng.IntN(len(fusible))]
	level, pattern := j.level(j.fusion[i]), j.patterns.of[i]
	if j.rng.IntN(2) == 0 {
		for _, o := range j.patterns.ops[pattern] {
			j.fuse(o, level)
		}
		return
	}
	l := j.p.Units.Levels[unit.Level(1+j.rng.IntN(int(unit.NumLevels)-1))]
	for _, o := range l.Ops[l.Of[i]] {
		if j.patterns.of[o] == pattern {
			j.fuse(int32(o), level)
		}
	}
}

// patterns sorts the ops that can be fused with a reader by what they and their
// readers are: networks repeat few such neighbourhoods many times.
type patterns struct {
	of  []int32   // [N] pattern of each op, or -1
	ops [][]int32 // ops of each pattern
}

func newPatterns(r *fuse.Rules) *patterns {
	type key struct {
		kind    graph.Kind
		phase   graph.Phase
		readers int
		first   graph.Kind // of the first that may take its output
		last    graph.Kind
	}
	g := r.Graph()
	p := &patterns{of: make([]int32, g.NumOps())}
	for i := range p.of {
		p.of[i] = -1
	}
	index := map[key]int32{}
	for _, i := range r.Fusible() {
		o, consumers := g.Op(graph.OpID(i)), r.FusibleConsumers(i)
		k := key{o.Kind, o.Phase, min(len(consumers), 3), g.Op(graph.OpID(consumers[0])).Kind, g.Op(graph.OpID(consumers[len(consumers)-1])).Kind}
		id, known := index[k]
		if !known {
			id = int32(len(p.ops))
			index[k] = id
			p.ops = append(p.ops, nil)
		}
		p.of[i] = id
		p.ops[id] = append(p.ops[id], i)
	}
	return p
}
