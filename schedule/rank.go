package schedule

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Edge is a dependency of op To on op From: a tensor of that size, or a control
// edge, which carries no bytes.
type Edge struct {
	From, To graph.OpID
	Bytes    units.Bytes
	Control  bool
}

// UpwardRank returns, [N], the length of the longest path from the start of each op
// to the end of the step, in seconds (Topcuoglu, Hariri, Wu 2002, equation 8).
// Seconds, [N], are the op times. Through returns the length of a path that begins
// with edge e and goes on for rank seconds; nil stands for edges that take no time.
// A rank never rises along an edge.
func UpwardRank(g *graph.Graph, seconds []float64, through func(e Edge, rank float64) float64) []float64 {
	if through == nil {
		through = func(_ Edge, rank float64) float64 { return rank }
	}
	rank := make([]float64, g.NumOps()) // until op i is reached: the longest path behind it
	for i := g.NumOps() - 1; i >= 0; i-- {
		v := graph.OpID(i)
		rank[v] += seconds[v]
		for _, t := range g.Inputs(v) {
			x := g.Tensor(t)
			rank[x.Producer] = max(rank[x.Producer], through(Edge{From: x.Producer, To: v, Bytes: x.Bytes}, rank[v]))
		}
		for _, q := range g.Control(v) {
			rank[q] = max(rank[q], through(Edge{From: q, To: v, Control: true}, rank[v]))
		}
	}
	return rank
}

// MeanRank returns the upward ranks of g, [N], with op times averaged over devices,
// seconds[D][N], and, on every edge that carries a tensor, the time of a transfer from
// the first device of m to the second, averaged over pairs of devices, equal ones too.
func MeanRank(g *graph.Graph, m *hw.Machine, seconds [][]float64) []float64 {
	d := float64(m.NumDevices())
	mean := make([]float64, g.NumOps())
	for _, column := range seconds {
		for v, x := range column {
			mean[v] += x / d
		}
	}
	return UpwardRank(g, mean, func(e Edge, rank float64) float64 {
		if e.Control || d < 2 {
			return rank
		}
		return rank + float64(m.TransferSeconds(0, 1, e.Bytes))*(d-1)/d
	})
}

// ByRank returns the ops of g by falling rank; ties go to the lower id. Ranks never rise
// along an edge, and ids rise, so the order is topological.
func ByRank(g *graph.Graph, rank []float64) []graph.OpID {
	order := make([]graph.OpID, g.NumOps())
	for v := range order {
		order[v] = graph.OpID(v)
	}
	slices.SortStableFunc(order, func(a, b graph.OpID) int { return cmp.Compare(rank[b], rank[a]) })
	return order
}

// PlacedCriticalPath returns the priority, [N], that runs the op with the longest
// path behind it first, under device, [N]: each op takes its time on its device,
// each dependency that crosses devices the time of its transfer over free links.
func PlacedCriticalPath(p *plan.Problem, device []uint8) []int32 {
	seconds := make([]float64, p.Graph.NumOps())
	for i, d := range device {
		seconds[i] = p.Evaluator.OpSeconds(int(d))[i]
	}
	level := UpwardRank(p.Graph, seconds, func(e Edge, rank float64) float64 {
		from, to := device[e.From], device[e.To]
		if from == to {
			return rank
		}
		latency, bandwidth := p.Machine.Transfer(int(from), int(to))
		return rank + (float64(latency) + float64(e.Bytes)/float64(bandwidth))
	})
	for i := range level {
		level[i] = -level[i]
	}
	return sim.RankByKey(level)
}
