package listsched

import (
	"context"
	"math"

	"placer/graph"
	"placer/plan"
	"placer/schedule"
)

// HEFT is "heft", the heterogeneous earliest-finish-time scheduler, on ops.
func HEFT() plan.Placer { return method{"heft", onOps((*gapFilling).heft)} }

// UnitHEFT is "heft-units", HEFT on chains, segments and cells in turn.
func UnitHEFT() plan.Placer { return method{"heft-units", onUnits((*gapFilling).heft)} }

// heft places all ops but sources that nothing reads; false: ctx has ended.
func (s *gapFilling) heft(ctx context.Context) bool {
	for k, i := range schedule.ByRank(s.g, upwardRank(s)) {
		if k%256 == 0 && ctx.Err() != nil {
			return false
		}
		if s.device[i] == none && !s.source[i] {
			s.place(i, s.soonest(i), true)
		}
	}
	return true
}

// soonest returns the device with room on which op i ends first; ties go to the
// lower one.
func (s *gapFilling) soonest(i graph.OpID) int {
	if f := s.fixed[s.ops.Of[i]]; f != none {
		return f
	}
	best, end := none, math.Inf(1)
	for v := range s.d {
		if s.room(i, v) < 0 {
			continue
		}
		w := s.seconds[v][i] + s.receipts(i, v)
		if e := s.devices[v].Earliest(s.ready(i, v), w) + w; e < end {
			best, end = v, e
		}
	}
	if best == none {
		return s.roomiest(i)
	}
	return best
}

// upwardRank returns, [N], the longest path from each op's start to the end, op
// times and transfers each averaged over devices and routes (equation 8 of the
// paper).
func upwardRank(s *gapFilling) []float64 {
	var latency, perByte float64
	mean := make([]float64, s.g.NumOps())
	for a := range s.d {
		for b := range s.d {
			if a != b {
				l, r := s.p.Machine.Transfer(a, b)
				pairs := float64(s.d * (s.d - 1))
				latency += float64(l) / pairs
				perByte += 1 / float64(r) / pairs
			}
		}
		for i, x := range s.seconds[a] {
			mean[i] += x / float64(s.d)
		}
	}
	return schedule.UpwardRank(s.g, mean, func(e schedule.Edge, rank float64) float64 {
		return rank + latency + float64(e.Bytes)*perByte
	})
}
