package schedule

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Coarsen returns p's graph with the units of part coarsened to nodes, and the
// time of every node on every device, [D][V] seconds. Of a bundle of tensors each
// beyond the first weighs what the link from the first device to the second could
// carry in its latency.
func Coarsen(p *plan.Problem, part *unit.Partition) (*unit.Coarsened, [][]float64, error) {
	var perTensor units.Bytes
	if p.Machine.NumDevices() > 1 {
		latency, bandwidth := p.Machine.Transfer(0, 1)
		perTensor = units.Bytes(float64(latency) * float64(bandwidth))
	}
	c, err := unit.Coarsen(p.Graph, part, perTensor)
	if err != nil {
		return nil, nil, err
	}
	var seconds [][]float64
	for d := range p.Machine.NumDevices() {
		seconds = append(seconds, c.Sum(p.Evaluator.OpSeconds(d)))
	}
	return c, seconds, nil
}

// CoarseProblem returns the coarsened graph of p's units in part, and the problem to place
// it, judged by the length of its step alone: a quick and rough picture of p. Its priority
// is the critical path's if p has any. It has no units, budget or seed.
func CoarseProblem(p *plan.Problem, part *unit.Partition) (*unit.Coarsened, *plan.Problem, error) {
	c, seconds, err := Coarsen(p, part)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range seconds {
		for v := range s {
			s[v] = max(s[v], shortest)
		}
	}
	s, err := sim.New(c.Graph, p.Machine, costs(seconds), sim.Default())
	if err != nil {
		return nil, nil, err
	}
	q := &plan.Problem{Graph: c.Graph, Machine: p.Machine, Evaluator: s, Moves: s.Moves}
	if p.Priority != nil {
		q.Priority = sim.CriticalPathPriority(c.Graph, seconds[0])
	}
	return c, q, nil
}

// shortest is the least time of a node: the simulator wants positive times.
const shortest = 1e-9

// costs satisfies the cost model of package sim.
type costs [][]float64

func (c costs) OpSeconds(i graph.OpID, d int) units.Seconds { return units.Seconds(c[d][i]) }
