package throughput

import (
	"placer/graph/unit"
	"placer/plan"
)

// finestOps is the largest graph whose ops are decided one by one.
const finestOps = 3000

// FromProblem returns the source of p: that of its evaluator where the objective
// is throughput and the evaluator says so, else one from its graph, machine and
// op times. In large graphs the ops of one cell stay together.
func FromProblem(p *plan.Problem) Source {
	if e, ok := p.Evaluator.(interface{ Source() Source }); ok {
		return coarsen(e.Source(), p)
	}
	s := Source{Graph: p.Graph, Machine: p.Machine}
	for d := range p.Machine.NumDevices() {
		s.Seconds = append(s.Seconds, p.Evaluator.OpSeconds(d))
	}
	return coarsen(s, p)
}

func coarsen(s Source, p *plan.Problem) Source {
	if p.Graph.NumOps() > finestOps && p.Units != nil && s.Part == nil {
		s.Part = p.Units.Levels[unit.Cell].Of
	}
	return s
}
