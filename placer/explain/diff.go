package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/internal/unionfind"
	"placer/internal/words"
	"placer/plan"
	"placer/units"
)

// Move is a group of differences between two plans: ops of one part of the model that
// go from one set of devices to another, or another order, or another fusion.
type Move struct {
	Name  string
	From  string // devices, with how many of the ops were on each; empty for order and fusion
	To    string
	Ops   int
	Bytes units.Bytes // that the ops hold throughout the step
	// Bought is what the step shrinks by when the group is moved after those before it;
	// negative where it grows.
	Bought Time
	Fits   bool // the plan with this group and those before it
}

// Difference is what lies between two plans of one graph on one machine. The moves buy
// exactly A less B together.
type Difference struct {
	A, B         Time
	AFits, BFits bool
	MovedOps     int
	MovedBytes   units.Bytes
	Moves        []Move // in the order in which they are made
}

// most is how many groups of ops a difference is told in; what is left is one more.
const most = 11

// Diff tells what moved from c's plan to b, and what each group of moves buys: the
// groups are moved one after another, each time the one that helps most. The error is that
// of ctx where it ends.
func Diff(ctx context.Context, c *Case, b *plan.Plan) (*Difference, error) {
	s, err := c.simulator(c.Machine)
	if err != nil {
		return nil, err
	}
	x := &Difference{}
	if x.A, x.AFits, err = stepOf(s, c.Plan); err != nil {
		return nil, err
	}
	if x.B, x.BFits, err = stepOf(s, b); err != nil {
		return nil, err
	}
	todo := x.groups(c, b)
	at, now := plan.Plan{Decision: c.Plan.Clone()}, x.A
	for len(todo) > 0 {
		best, bestStep, bestFits := -1, Time(0), false
		for k := range todo {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			next := plan.Plan{Decision: todo[k].apply(at.Decision, b.Decision)}
			t, fits, err := stepOf(s, &next)
			if err != nil {
				return nil, err
			}
			if best < 0 || t < bestStep {
				best, bestStep, bestFits = k, t, fits
			}
		}
		m := todo[best].Move
		m.Bought, m.Fits = now-bestStep, bestFits
		x.Moves = append(x.Moves, m)
		at.Decision, now = todo[best].apply(at.Decision, b.Decision), bestStep
		todo = slices.Delete(todo, best, best+1)
	}
	return x, nil
}

// change is a move with what it changes.
type change struct {
	Move
	ops              []graph.OpID
	priority, fusion bool
}

// apply returns d with the change of m made, as b has it.
func (m *change) apply(d, b plan.Decision) plan.Decision {
	switch {
	case m.priority:
		d.Priority = b.Priority
	case m.fusion:
		d.Fusion = b.Fusion
	default:
		d.Device = slices.Clone(d.Device)
		for _, i := range m.ops {
			d.Device[i] = b.Device[i]
		}
	}
	return d
}

// groups returns the changes from c's plan to b: ops by part of the model, the parts
// with the most ops on their own; then order and fusion. Ops that must share a device
// are in one group.
func (x *Difference) groups(c *Case, b *plan.Plan) (all []*change) {
	g, a := c.Source.Graph, c.Plan
	n := g.NumOps()
	named := Named(g)
	names := make([]string, n)
	index := map[string]int32{}
	for i := range n {
		names[i] = LayerOf(g.Op(graph.OpID(i)), named)
		if _, ok := index[names[i]]; !ok {
			index[names[i]] = int32(len(index))
		}
	}
	joined := unionfind.New(len(index))
	first := map[int32]int32{}
	for i := range n {
		if k := g.Op(graph.OpID(i)).Group; k > 0 {
			if j, ok := first[k]; ok {
				joined.Join(j, index[names[i]])
			} else {
				first[k] = index[names[i]]
			}
		}
	}
	by := map[int32]*change{}
	for i := range n {
		if a.Device[i] == b.Device[i] {
			continue
		}
		root := joined.Root(index[names[i]])
		m := by[root]
		if m == nil {
			m = &change{Move: Move{Name: names[i]}}
			by[root] = m
			all = append(all, m)
		} else if m.Name != names[i] && !strings.HasSuffix(m.Name, " and others") {
			m.Name += " and others"
		}
		m.ops = append(m.ops, graph.OpID(i))
	}
	slices.SortStableFunc(all, func(p, q *change) int { return cmp.Compare(len(q.ops), len(p.ops)) })
	if len(all) > most+1 {
		rest := &change{Move: Move{Name: words.Count(len(all)-most, "other part", "other parts")}}
		for _, m := range all[most:] {
			rest.ops = append(rest.ops, m.ops...)
		}
		all = append(all[:most], rest)
	}
	for _, m := range all {
		m.describe(c, b)
		x.MovedOps += m.Ops
		x.MovedBytes += m.Bytes
	}
	if !slices.Equal(a.Priority, b.Priority) {
		all = append(all, &change{Move: Move{Name: "order of ops"}, priority: true})
	}
	if !slices.Equal(a.Fusion, b.Fusion) {
		all = append(all, &change{Move: Move{Name: "fusion"}, fusion: true})
	}
	return all
}

// describe counts what m moves.
func (m *change) describe(c *Case, b *plan.Plan) {
	from, to := make([]int, c.Machine.NumDevices()), make([]int, c.Machine.NumDevices())
	m.Ops = len(m.ops)
	for _, i := range m.ops {
		from[c.Plan.Device[i]]++
		to[b.Device[i]]++
		m.Bytes += c.Source.Graph.Op(i).Resident
	}
	words := func(count []int) string {
		var w []string
		for d, n := range count {
			if n == m.Ops {
				return c.Machine.Devices[d].Name
			}
			if n > 0 {
				w = append(w, fmt.Sprintf("%s: %d", c.Machine.Devices[d].Name, n))
			}
		}
		return strings.Join(w, ", ")
	}
	m.From, m.To = words(from), words(to)
}
