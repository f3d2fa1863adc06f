package sequential

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
	"placer/workloads"
)

// Case is a problem by name.
type Case struct {
	// Workload is a name that workloads.Build takes, or the style of a generated
	// net with its depth, batch, width, work and seed: "towers:20,64,1024,2,7".
	Workload string
	GPU      string // machine, as hw.Take takes it
	Devices  int
	// Bandwidth is a factor of all links' bandwidths; 0 leaves them as they are.
	Bandwidth float64
}

// Problem builds the case: its graph, machine, units and simulator.
func (c Case) Problem() (*plan.Problem, error) {
	g, err := c.graph()
	if err != nil {
		return nil, err
	}
	m, err := hw.Take(c.GPU, c.Devices, false)
	if err != nil {
		return nil, err
	}
	if c.Bandwidth > 0 {
		for i := range m.Links {
			m.Links[i].Bandwidth *= units.BytesPerSecond(c.Bandwidth)
		}
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		return nil, err
	}
	p.Units = p.Units.WithoutPartialGradients() // which training does not know (see NewFeatures)
	return &p.Problem, nil
}

// graph builds the case's graph.
func (c Case) graph() (*graph.Graph, error) {
	style, rest, _ := strings.Cut(c.Workload, ":")
	if styles[style] == nil {
		return workloads.Build(c.Workload)
	}
	var n netSpec
	if _, err := fmt.Sscanf(rest, "%d,%d,%d,%g,%d", &n.depth, &n.batch, &n.width, &n.work, &n.seed); err != nil {
		return nil, fmt.Errorf("generated net %q: %w", c.Workload, err)
	}
	return randomNet(style, n)
}
