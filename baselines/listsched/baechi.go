package listsched

import (
	"context"
	"fmt"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

// MTOPO is "m-topo" of Baechi: ops in topological order fill device after device.
func MTOPO() plan.Placer {
	return method{"m-topo", baechi(func(_ context.Context, m *model, _ *budget.Tracker) assignment {
		return func(room []units.Bytes) ([]int, bool) { return m.topo(room), true }
	})}
}

// METF is "m-etf" of Baechi: the earliest start among the devices that have room.
func METF() plan.Placer {
	return method{"m-etf", baechi(func(ctx context.Context, m *model, _ *budget.Tracker) assignment {
		return func(room []units.Bytes) ([]int, bool) { return m.etf(ctx, room, nil) }
	})}
}

// MSCT is "m-sct" of Baechi: m-ETF with devices kept for favourite children.
func MSCT() plan.Placer {
	return method{"m-sct", baechi(func(ctx context.Context, m *model, track *budget.Tracker) assignment {
		var favourites []int32
		if ctx.Err() == nil {
			f := m.favourites(ctx)
			favourites = f.child
			if f.note != "" {
				track.Note("%s", f.note)
			}
		}
		return func(room []units.Bytes) ([]int, bool) { return m.etf(ctx, room, favourites) }
	})}
}

// assignment returns the device of each group, [K], given the memory of each device,
// [D]; false when the context has ended.
type assignment func(room []units.Bytes) ([]int, bool)

// shares are the parts of each device's memory that are given away, in turn until
// the simulator finds that the placement fits.
var shares = [...]float64{1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3}

// baechi decides for the whole memory, and again for less while the placement does
// not fit.
func baechi(rule func(context.Context, *model, *budget.Tracker) assignment) placing {
	return func(ctx context.Context, p *plan.Problem, name string) (*plan.Outcome, error) {
		track := budget.New(ctx, p, name)
		m, err := newModel(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		assign := rule(ctx, m, track)
		device := make([]uint8, p.Graph.NumOps())
		room := make([]units.Bytes, m.d)
		for k, share := range shares {
			if k > 0 && track.Done() {
				break
			}
			for v := range room {
				room[v] = units.Bytes(share * float64(p.Machine.Devices[v].Memory))
			}
			of, ok := assign(room)
			if !ok {
				break
			}
			m.expand(of, device)
			if track.Try(device).Feasible() {
				break
			}
		}
		return track.Outcome()
	}
}

// model is what Baechi decides on: nodes of cells, in groups of a cell and its
// counterpart.
type model struct {
	*nodes
	source []bool    // [V] variables that nothing comes before
	level  []float64 // [V] longest path to the end, transfers not counted
	after  [][]graph.OpID
	before []int // [V] number of nodes to wait for, sources left out
}

func newModel(p *plan.Problem) (*model, error) {
	n, err := newNodes(p, unit.Cell, byPair(p.Units.Counterparts[unit.Cell]))
	if err != nil {
		return nil, err
	}
	v := n.g.NumOps()
	m := &model{nodes: n, source: sources(n.c, p.Units.Roles[unit.Cell]), level: schedule.UpwardRank(n.g, n.seconds[0], nil), after: make([][]graph.OpID, v), before: make([]int, v)}
	for v--; v >= 0; v-- {
		m.predecessors(graph.OpID(v), func(q graph.OpID, _ units.Bytes) {
			if !m.source[q] {
				m.after[q] = append(m.after[q], graph.OpID(v))
				m.before[v]++
			}
		})
	}
	return m, nil
}

// predecessors calls f for each thing that node v waits for, a node as often as v
// reads tensors of it.
func (m *model) predecessors(v graph.OpID, f func(q graph.OpID, b units.Bytes)) {
	for _, t := range m.g.Inputs(v) {
		f(m.g.Tensor(t).Producer, m.g.Tensor(t).Bytes)
	}
	for _, q := range m.g.Control(v) {
		f(q, 0)
	}
}
