package cli

import (
	"bytes"
	"fmt"
	"path/filepath"

	"placer/hw"
	"placer/internal/fsx"
	"placer/placer/search"
	"placer/plan"
	"placer/plan/formats"
)

// maxPlan bounds a placement, in whatever form.
const maxPlan = 1 << 30

// planOf reads the plan at path for l on m: placer's own file, or what another program
// takes. l becomes what a plan is for, with its changes. It says when a plan was made for
// a machine of other figures.
func (c *console) planOf(path string, l *loaded, m *hw.Machine) (*plan.Plan, error) {
	var data []byte
	var err error
	if path == "-" {
		path = "stdin"
		data, err = fsx.ReadAll(c.in, path, maxPlan)
	} else {
		data, err = fsx.ReadFile(path, maxPlan)
	}
	if err != nil {
		if within := filepath.Join(path, search.PlanFile); isFile(within) {
			return nil, fmt.Errorf("%s is a folder; its plan is %s", path, within)
		}
		return nil, err
	}
	if _, other := formats.IsTarget(data); other {
		return formats.Read(data, path, l.Graph, m)
	}
	file, err := plan.Read(bytes.NewReader(data), path)
	if err != nil {
		return nil, err
	}
	if err := l.change(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := file.Plan(l.Graph, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !file.SameMachine(m) {
		c.note("%s: the plan was made for machine %s, whose figures differ from those of %s", path, file.MachineName, m.Name)
	}
	return p, nil
}
