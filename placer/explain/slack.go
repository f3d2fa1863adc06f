package explain

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/sim"
	"placer/units"
)

// slacks returns how much later each op of r's trace could end, alone, without a longer
// step, if every device ran its ops and every link its transfers in the order of the
// trace. why says why that is not known, with no slacks.
func slacks(c *Case, r *sim.Result) (slack []units.Seconds, why string) {
	m := c.Machine
	if m.OccupiesSender() {
		return nil, "copies occupy the sender on this machine"
	}
	t := r.Trace
	// latest is when each op and, behind them, each transfer has to end.
	n := len(t.Ops)
	latest := make([]units.Seconds, n+len(t.Transfers))
	start, end := make([]units.Seconds, len(latest)), make([]units.Seconds, len(latest))
	for k := range latest {
		latest[k] = r.Makespan
		if k < n {
			start[k], end[k] = t.Ops[k].Start, t.Ops[k].End
		} else {
			start[k], end[k] = t.Transfers[k-n].Start, t.Transfers[k-n].End
		}
	}
	next := successors(c, t)
	order := make([]int32, len(latest))
	for k := range order {
		order[k] = int32(k)
	}
	// What follows something starts when it has ended, so never earlier than it starts.
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(start[b], start[a]), cmp.Compare(end[b], end[a]), cmp.Compare(b, a))
	})
	for _, k := range order {
		for _, f := range next[k] {
			latest[k] = min(latest[k], latest[f]-(end[f]-start[f]))
		}
	}
	slack = make([]units.Seconds, n)
	for k := range slack {
		slack[k] = max(0, latest[k]-end[k])
	}
	return slack, ""
}

// successors returns what has to wait for each op of t and each transfer behind them:
// the next op on the device, the transfers of what an op makes, the ops that read a
// transfer, the next transfer on each link.
func successors(c *Case, t *sim.Trace) [][]int32 {
	g, m, n := c.Source.Graph, c.Machine, len(t.Ops)
	next := make([][]int32, n+len(t.Transfers))
	span := make([]int32, g.NumOps()) // the span that an op is in
	last := make([]int32, m.NumDevices())
	for d := range last {
		last[d] = -1
	}
	for k, s := range t.Ops {
		span[s.Op] = int32(k)
		for _, i := range s.Fused {
			span[i] = int32(k)
		}
		if p := last[s.Device]; p >= 0 {
			next[p] = append(next[p], int32(k))
		}
		last[s.Device] = int32(k)
	}
	device := c.Plan.Device
	held := make([]int32, len(m.Links))
	for l := range held {
		held[l] = -1
	}
	waits := controlled(g)
	starts := make([]int32, len(t.Transfers))
	for k := range starts {
		starts[k] = int32(k)
	}
	slices.SortStableFunc(starts, func(a, b int32) int { return cmp.Compare(t.Transfers[a].Start, t.Transfers[b].Start) })
	for _, k := range starts {
		x, at := t.Transfers[k], int32(n)+k
		next[span[x.Op]] = append(next[span[x.Op]], at)
		readers := waits[x.Op]
		if x.Tensor != sim.NoTensor {
			readers = g.Consumers(x.Tensor)
		}
		for _, i := range readers {
			if int(device[i]) == x.To {
				next[at] = append(next[at], span[i])
			}
		}
		for _, l := range m.Route(x.From, x.To) {
			if p := held[l]; p >= 0 && t.Transfers[p].End <= x.Start {
				next[int32(n)+p] = append(next[int32(n)+p], at)
			}
			held[l] = k
		}
	}
	return next
}

// controlled returns the ops that wait for each op by control dependency.
func controlled(g *graph.Graph) map[graph.OpID][]graph.OpID {
	waits := map[graph.OpID][]graph.OpID{}
	for i := range graph.OpID(g.NumOps()) {
		for _, p := range g.Control(i) {
			waits[p] = append(waits[p], i)
		}
	}
	return waits
}
