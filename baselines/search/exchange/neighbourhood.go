package exchange

import (
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
)

// neighbourhood is the single changes of a problem's plans, in the order in which two are
// made: devices, priorities, fusion.
type neighbourhood struct {
	movable [][]graph.OpID // ops that change devices together
	changes []change
}

// change is one change of a plan, in place.
type change interface{ apply(plan.Decision) }

// put puts ops on a device.
type put struct {
	ops    []graph.OpID
	device uint8
}

func (c put) apply(d plan.Decision) {
	for _, i := range c.ops {
		d.Device[i] = c.device
	}
}

// byPath sets the priorities of the longest path under the plan's devices.
type byPath struct{ *plan.Problem }

func (c byPath) apply(d plan.Decision) {
	copy(d.Priority, schedule.PlacedCriticalPath(c.Problem, d.Device))
}

// pass gives op i the rank of op j; those between move up by one towards where it was.
type pass struct{ i, j int32 }

func (c pass) apply(d plan.Decision) {
	from, to := d.Priority[c.i], d.Priority[c.j]
	for k, r := range d.Priority {
		switch {
		case to <= r && r < from:
			d.Priority[k]++
		case from < r && r <= to:
			d.Priority[k]--
		}
	}
	d.Priority[c.i] = to
}

// join gives op a fusion priority.
type join struct {
	op    int32
	level uint8
}

func (c join) apply(d plan.Decision) { d.Fusion[c.op] = c.level }

// joinAll gives every op the same one.
type joinAll struct{ level uint8 }

func (c joinAll) apply(d plan.Decision) {
	for i := range d.Fusion {
		d.Fusion[i] = c.level
	}
}

// Fusion priorities that changes give: an op is visited first, last, or with the others.
const fuseLast, fuseWith, fuseFirst = 1, 4, 8

func newNeighbourhood(p *plan.Problem) *neighbourhood {
	s := &neighbourhood{movable: movable(p.Graph, p.Units.Levels[unit.Op])}
	add := func(c ...change) { s.changes = append(s.changes, c...) }
	if p.Decides(plan.Place) && p.Machine.NumDevices() > 1 {
		for _, ops := range s.movable {
			for d := range p.Machine.NumDevices() {
				add(put{ops, uint8(d)})
			}
		}
	}
	if p.Decides(plan.Schedule) {
		add(byPath{p})
		for _, x := range unordered(p.Graph) {
			add(pass{x[0], x[1]}, pass{x[1], x[0]})
		}
	}
	if p.Decides(plan.Fuse) {
		add(joinAll{fuse.Never}, joinAll{fuseWith})
		for _, i := range fuse.NewRules(p.Graph).Fusible() {
			add(join{i, fuse.Never}, join{i, fuseLast}, join{i, fuseFirst})
		}
	}
	return s
}

// source reports whether op i computes nothing and waits for nothing.
func source(g *graph.Graph, i graph.OpID) bool {
	switch g.Op(i).Kind.Class() {
	case graph.ClassVariable, graph.ClassConst, graph.ClassInput:
		return len(g.Inputs(i)) == 0
	}
	return false
}

// movable returns the ops that change devices together: units, each with the sources that
// it alone reads.
func movable(g *graph.Graph, units *unit.Partition) [][]graph.OpID {
	all := make([][]graph.OpID, units.NumUnits())
	for u, ops := range units.Ops {
		to := int32(u)
		if len(ops) == 1 && source(g, ops[0]) {
			if v, ok := reader(g, units, ops[0]); ok {
				to = v
			}
		}
		all[to] = append(all[to], ops...)
	}
	return slices.DeleteFunc(all, func(ops []graph.OpID) bool { return len(ops) == 0 })
}

// reader returns the unit that alone reads op i; ok is false where there is none.
func reader(g *graph.Graph, units *unit.Partition, i graph.OpID) (u int32, ok bool) {
	first, end := g.Outputs(i)
	for x := first; x < end; x++ {
		for _, c := range g.Consumers(x) {
			if ok && units.Of[c] != u {
				return 0, false
			}
			u, ok = units.Of[c], true
		}
	}
	return u, ok
}

// unordered returns the pairs of ops that compute of which neither waits for the other.
func unordered(g *graph.Graph) (pairs [][2]int32) {
	n := g.NumOps()
	waits := make([][]bool, n) // for whom an op waits, directly or not
	for i := range n {
		waits[i] = make([]bool, n)
		for q := range g.Predecessors(graph.OpID(i)) {
			waits[i][q] = true
			for k, w := range waits[q] {
				waits[i][k] = waits[i][k] || w
			}
		}
		for j := range i {
			if !waits[i][j] && !source(g, graph.OpID(i)) && !source(g, graph.OpID(j)) {
				pairs = append(pairs, [2]int32{int32(i), int32(j)})
			}
		}
	}
	return pairs
}
