package schedule

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Coarsen returns p's graph with the units of part coarsened to nodes, and the
// time of every node on every device, [D][V] seconds. Of a bundle of tensors each
// beyond the first weighs what the link from the first device to the second could
// carry in its latency.
func Coarsen(p *plan.Problem, part *unit.Partition) (*unit.Coarsened, [][]float64, error) {
	c, err := unit.Coarsen(p.Graph, part, InLatency(p.Machine))
	if err != nil {
		return nil, nil, err
	}
	return c, seconds(p, c), nil
}

// InLatency returns the bytes that the link from the first device of m to the second
// carries in its latency.
func InLatency(m *hw.Machine) units.Bytes {
	if m.NumDevices() < 2 {
		return 0
	}
	latency, bandwidth := m.Transfer(0, 1)
	return units.Bytes(float64(latency) * float64(bandwidth))
}

// seconds returns the time of every node of c on every device, [D][V].
func seconds(p *plan.Problem, c *unit.Coarsened) [][]float64 {
	x := make([][]float64, p.Machine.NumDevices())
	for d := range x {
		x[d] = c.Sum(p.Evaluator.OpSeconds(d))
	}
	return x
}

// CoarseProblem returns the problem to place c, which p's graph was coarsened to, judged by
// the length of its step alone: a quick and rough picture of p. Its priority is the critical
// path's if p has any. It has no units, budget or seed. What bundles of tensors weigh more is
// held in memory too.
func CoarseProblem(p *plan.Problem, c *unit.Coarsened) (*plan.Problem, error) {
	seconds := seconds(p, c)
	for _, s := range seconds {
		for v := range s {
			s[v] = max(s[v], shortest)
		}
	}
	s, err := sim.New(c.Graph, p.Machine, costs(seconds), sim.Default())
	if err != nil {
		return nil, err
	}
	q := &plan.Problem{Graph: c.Graph, Machine: p.Machine, Evaluator: s, Moves: s.Moves}
	if p.Priority != nil {
		q.Priority = sim.CriticalPathPriority(c.Graph, seconds[0])
	}
	return q, nil
}

// shortest is the least time of a node: the simulator wants positive times.
const shortest = 1e-9

// costs satisfies the cost model of package sim.
type costs [][]float64

func (c costs) OpSeconds(i graph.OpID, d int) units.Seconds { return units.Seconds(c[d][i]) }
