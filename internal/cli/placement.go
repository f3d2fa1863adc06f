package cli

import (
	"bytes"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/internal/fsx"
	"placer/plan"
	"placer/plan/formats"
)

// maxPlan bounds a placement, in whatever form.
const maxPlan = 1 << 30

// placement reads the plan at path for g on m: placer's own file, or what another
// program takes. It says when a plan was made for a machine of other figures.
func (c *console) placement(path string, g *graph.Graph, m *hw.Machine) (*plan.Plan, error) {
	var data []byte
	var err error
	if path == "-" {
		path = "stdin"
		data, err = fsx.ReadAll(c.in, path, maxPlan)
	} else {
		data, err = fsx.ReadFile(path, maxPlan)
	}
	if err != nil {
		return nil, err
	}
	if _, other := formats.IsTarget(data); other {
		return formats.Read(data, path, g, m)
	}
	file, err := plan.Read(bytes.NewReader(data), path)
	if err != nil {
		return nil, err
	}
	p, err := file.Plan(g, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !file.SameMachine(m) {
		fmt.Fprintf(c.err, "placer: the plan was made for machine %s, whose figures differ from those of %s\n", file.MachineName, m.Name)
	}
	return p, nil
}
