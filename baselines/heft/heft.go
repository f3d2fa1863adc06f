package heft

import (
	"cmp"
	"context"
	"math"
	"slices"

	"placer/baselines/judge"
	"placer/graph"
	"placer/plan"
)

// HEFT is the heterogeneous earliest-finish-time scheduler.
type HEFT struct {
	// Units decides on chains, segments and cells in turn, not on ops.
	Units bool
}

var _ plan.Placer = HEFT{}

// Name returns "heft" or "heft-units".
func (h HEFT) Name() string {
	if h.Units {
		return "heft-units"
	}
	return "heft"
}

// Kind returns plan.Baseline.
func (HEFT) Kind() plan.Kind { return plan.Baseline }

// Place schedules once, or once per level, and evaluates the devices chosen.
func (h HEFT) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if h.Units {
		return onUnits(ctx, p, h.Name(), func(s *schedule) bool { return s.heft(ctx) })
	}
	j := judge.New(ctx, p, h.Name())
	s := newSchedule(p)
	if !s.heft(ctx) {
		return j.Outcome()
	}
	j.Try(s.devicesOf())
	return j.Outcome()
}

// heft places all ops but sources that nothing reads; false: ctx has ended.
func (s *schedule) heft(ctx context.Context) bool {
	rank := upwardRank(s)
	order := make([]graph.OpID, len(rank))
	for i := range order {
		order[i] = graph.OpID(i)
	}
	// Ranks never rise along an edge, and ids rise, so the order is topological.
	slices.SortFunc(order, func(a, b graph.OpID) int {
		return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(a, b))
	})
	for k, i := range order {
		if k%256 == 0 && ctx.Err() != nil {
			return false
		}
		if s.device[i] == unplaced && !s.source[i] {
			s.place(i, s.soonest(i), true)
		}
	}
	return true
}

// soonest returns the device with room on which op i ends first; ties go to the
// lower one.
func (s *schedule) soonest(i graph.OpID) int {
	if f := s.fixed[s.ops.Of[i]]; f != unplaced {
		return f
	}
	best, end := unplaced, math.Inf(1)
	for v := range s.d {
		if s.room(i, v) < 0 {
			continue
		}
		w := s.seconds[v][i]
		if e := s.devices[v].earliest(s.ready(i, v), w) + w; e < end {
			best, end = v, e
		}
	}
	if best == unplaced {
		return s.roomiest(i)
	}
	return best
}

// upwardRank returns, [N], the longest path from each op's start to the end, op
// times and transfers each averaged over devices and routes (equation 8 of the
// paper).
func upwardRank(s *schedule) []float64 {
	n := s.g.NumOps()
	var latency, perByte float64
	for a := range s.d {
		for b := range s.d {
			if a != b {
				l, r := s.p.Machine.Transfer(a, b)
				pairs := float64(s.d * (s.d - 1))
				latency += float64(l) / pairs
				perByte += 1 / float64(r) / pairs
			}
		}
	}
	rank := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		var mean float64
		for v := range s.d {
			mean += s.seconds[v][i] / float64(s.d)
		}
		rank[i] += mean // so far the longest path behind it
		for _, t := range s.g.Inputs(graph.OpID(i)) {
			x := s.g.Tensor(t)
			rank[x.Producer] = max(rank[x.Producer], rank[i]+latency+float64(x.Bytes)*perByte)
		}
		for _, q := range s.g.Control(graph.OpID(i)) {
			rank[q] = max(rank[q], rank[i]+latency)
		}
	}
	return rank
}
