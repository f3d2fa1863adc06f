package schedule

import (
	"placer/graph/unit"
	"placer/plan"
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
