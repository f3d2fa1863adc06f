package rl2017

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/internal/unionfind"
	"placer/schedule"
	"placer/units"
)

// colocation says which ops the policy decides together (section 3.3): the framework's
// own groups, gradients with what they are gradients of, then the modules, what a model's
// builder would name (an LSTM cell, a branch of convolutions); then every group whose
// outputs only one other group reads joins that one, again and again until nothing
// changes. A group that a module made whole does not join its reader: otherwise one module
// after another would, and the model end up in one group.
//
// The paper's authors drew the groups of their models by hand, variables and
// bookkeeping included. Here, groups that take next to no time join the group that they
// exchange most bytes with, and ever longer ones do until no more than most are left. No
// group grows beyond room, except by the framework's rules: what fills a device can no
// longer be moved.
type colocation struct {
	graph   *graph.Graph
	modules [][]graph.OpID
	seconds []float64   // [N] of the ops
	most    int         // groups
	room    units.Bytes // that a group's ops hold for the whole step
}

// groups returns the co-location groups. It fails where ctx ends before, for a large graph
// takes seconds.
func (c colocation) groups(ctx context.Context) (*unit.Partition, error) {
	m := newMerger(c.graph, c.room)
	m.framework()
	m.modules(c.modules)
	if err := repeat(ctx, m.soleConsumers); err != nil {
		return nil, err
	}
	total := 0.0
	for _, s := range c.seconds {
		total += s
	}
	if err := repeat(ctx, func() bool { return m.absorb(c.seconds, nextToNoTime*total, 1) }); err != nil {
		return nil, err
	}
	for limit := nextToNoTime * total; m.count() > c.most; limit *= 2 {
		if err := repeat(ctx, func() bool { return m.count() > c.most && m.absorb(c.seconds, limit, c.most) }); err != nil {
			return nil, err
		}
		if limit > total {
			break // what is left exchanges nothing
		}
	}
	return m.partition(), nil
}

// repeat calls merge until it has nothing to merge any more, or ctx ends.
func repeat(ctx context.Context, merge func() bool) error {
	for merge() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// nextToNoTime is a share of the time of all ops.
const nextToNoTime = 1e-4

// modules returns the cells of h, or its branches where convolutions do most of
// the arithmetic. Weights are not among them: a weight belongs to no one cell of
// its layer.
func modules(g *graph.Graph, h *unit.Hierarchy) (all [][]graph.OpID) {
	l := unit.Cell
	if convolutional(g) {
		l = unit.Segment
	}
	for u, ops := range h.Levels[l].Ops {
		if h.Roles[l][u] != unit.Weights {
			all = append(all, ops)
		}
	}
	return all
}

// convolutional reports whether convolutions do most of the arithmetic.
func convolutional(g *graph.Graph) bool {
	var all, conv float64
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		all += float64(o.FLOPs)
		if o.Kind.Class() == graph.ClassConv {
			conv += float64(o.FLOPs)
		}
	}
	return conv > all/2
}

// merger makes groups of ops; the lowest op of a group leads it.
type merger struct {
	graph  *graph.Graph
	groups unionfind.Sets
	whole  []bool // [N], of leaders
	bytes  []units.Bytes
	room   units.Bytes
}

func newMerger(g *graph.Graph, room units.Bytes) *merger {
	n := g.NumOps()
	m := &merger{graph: g, groups: unionfind.New(n), whole: make([]bool, n), bytes: make([]units.Bytes, n), room: room}
	for i := range n {
		m.bytes[i] = g.Op(graph.OpID(i)).Resident
	}
	return m
}

func (m *merger) join(i, j int32) {
	if i, j = m.groups.Join(i, j); i != j {
		m.bytes[i] += m.bytes[j]
		m.whole[i] = m.whole[i] || m.whole[j]
	}
}

// framework joins what the framework or its gradients tie together.
func (m *merger) framework() {
	first := map[int32]graph.OpID{}
	for i := range m.graph.NumOps() {
		o := m.graph.Op(graph.OpID(i))
		if o.Group > 0 {
			if j, ok := first[o.Group]; ok {
				m.join(int32(i), int32(j))
			} else {
				first[o.Group] = graph.OpID(i)
			}
		}
		if o.Phase == graph.Backward && o.Forward != graph.None {
			m.join(int32(i), int32(o.Forward))
		}
	}
}

// modules makes the ops of each module a whole group, as far as there is room.
func (m *merger) modules(all [][]graph.OpID) {
	for _, ops := range all {
		for _, i := range ops {
			m.tryJoin(int32(ops[0]), int32(i))
		}
		if len(ops) > 1 {
			m.whole[m.groups.Root(int32(ops[0]))] = true
		}
	}
}

// tryJoin joins the groups of i and j if there is room, and reports whether they
// were two and are one.
func (m *merger) tryJoin(i, j int32) bool {
	i, j = m.groups.Root(i), m.groups.Root(j)
	if i == j || m.bytes[i]+m.bytes[j] > m.room {
		return false
	}
	m.join(i, j)
	return true
}

// soleConsumers joins every group that only one other reads with that one, all
// judged by the groups as they were, and reports whether there was any.
func (m *merger) soleConsumers() bool {
	const none, several = -1, -2
	reader := make([]int32, len(m.groups))
	for i := range reader {
		reader[i] = none
	}
	read := func(from, to graph.OpID) {
		a, b := m.groups.Root(int32(from)), m.groups.Root(int32(to))
		switch {
		case a == b || reader[a] == b:
		case reader[a] == none:
			reader[a] = b
		default:
			reader[a] = several
		}
	}
	for i := range m.graph.NumOps() {
		for _, t := range m.graph.Inputs(graph.OpID(i)) {
			read(m.graph.Tensor(t).Producer, graph.OpID(i))
		}
	}
	joined := false
	for i, r := range reader {
		if r >= 0 && !m.whole[m.groups.Root(int32(i))] && m.tryJoin(int32(i), r) {
			joined = true
		}
	}
	return joined
}

// absorb joins groups that take less than limit seconds, the shortest first, with
// the group that each exchanges most bytes with, the lower of equals, while there
// are more than least groups, and reports whether it joined any. A group takes
// part in one join at most, so that none swallows a whole region at once.
func (m *merger) absorb(seconds []float64, limit float64, least int) bool {
	time := make([]float64, len(m.groups))
	for i, s := range seconds {
		time[m.groups.Root(int32(i))] += s
	}
	type join struct{ light, other int32 }
	of := make([]int32, len(m.groups))
	for i := range of {
		of[i] = m.groups.Root(int32(i))
	}
	light := func(all iter.Seq[schedule.Exchange]) iter.Seq[schedule.Exchange] {
		return func(yield func(schedule.Exchange) bool) {
			for e := range all {
				if (time[e.From] < limit || time[e.To] < limit) && !yield(e) {
					return
				}
			}
		}
	}
	heaviest := schedule.NewCommunication(len(of), schedule.BytesPlusOne, light(schedule.Reads(m.graph, of)), light(schedule.Controls(m.graph, of))).Heaviest(1)
	var pairs []join
	for i := range of {
		if other, _ := heaviest.Neighbours(int32(i)); len(other) > 0 && time[i] < limit {
			pairs = append(pairs, join{int32(i), other[0]})
		}
	}
	slices.SortStableFunc(pairs, func(x, y join) int { return cmp.Compare(time[x.light], time[y.light]) })
	taken := make([]bool, len(m.groups))
	groups, joined := m.count(), false
	for _, e := range pairs {
		if groups > least && !taken[e.light] && !taken[e.other] && m.tryJoin(e.light, e.other) {
			taken[e.light], taken[e.other] = true, true
			groups--
			joined = true
		}
	}
	return joined
}

// count returns the number of groups.
func (m *merger) count() (n int) {
	for i := range m.groups {
		if m.groups[i] == int32(i) {
			n++
		}
	}
	return n
}

// partition numbers the groups in the order of their first ops.
func (m *merger) partition() *unit.Partition {
	p := &unit.Partition{Of: make([]int32, len(m.groups))}
	for i := range m.groups {
		lead := m.groups.Root(int32(i))
		if lead == int32(i) {
			p.Of[i] = int32(len(p.Ops))
			p.Ops = append(p.Ops, nil)
		} else {
			p.Of[i] = p.Of[lead]
		}
		p.Ops[p.Of[i]] = append(p.Ops[p.Of[i]], graph.OpID(i))
	}
	return p
}
