package schedule

import (
	"placer/graph"
	"placer/plan"
	"placer/sim"
)

// FIFO is TensorFlow's order: of a device's ready ops the one ready first. It
// needs no priorities, so it returns none.
func FIFO() []int32 { return nil }

// CriticalPath runs the op with the longest path behind it first, whatever the
// placement: times are those of device 0.
func CriticalPath(p *plan.Problem) []int32 {
	return sim.CriticalPathPriority(p.Graph, p.Evaluator.OpSeconds(0))
}

// PlacedCriticalPath runs the op with the longest path behind it first, under
// device, [N]: each op takes its time on its device, each dependency that crosses
// devices that of its transfer, were the links free.
func PlacedCriticalPath(p *plan.Problem, device []uint8) []int32 {
	g, n := p.Graph, p.Graph.NumOps()
	level := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		d := device[i]
		level[i] += p.Evaluator.OpSeconds(int(d))[i]
		behind := func(q graph.OpID, bytes float64) {
			x := level[i]
			if device[q] != d {
				latency, bandwidth := p.Machine.Transfer(int(device[q]), int(d))
				x += float64(latency) + bytes/float64(bandwidth)
			}
			level[q] = max(level[q], x)
		}
		for _, t := range g.Inputs(graph.OpID(i)) {
			behind(g.Tensor(t).Producer, float64(g.Tensor(t).Bytes))
		}
		for _, q := range g.Control(graph.OpID(i)) {
			behind(q, 0)
		}
	}
	for i := range level {
		level[i] = -level[i]
	}
	return sim.RankByKey(level)
}
