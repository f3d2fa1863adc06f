package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/fsx"
	"placer/internal/words"
	"placer/placer/search"
	"placer/plan"
	"placer/plan/formats"
	"placer/sim/schedule"
)

// maxPlan bounds a placement, in whatever form.
const maxPlan = 1 << 30

// stdin is what errors call it.
const stdin = "stdin"

// inputName returns what errors call the input at path.
func inputName(path string) string {
	if path == "-" {
		return stdin
	}
	return path
}

// readPlacement reads the placement in the file at path, in whatever form, or from stdin for
// "-".
func (c *console) readPlacement(path string) ([]byte, error) {
	if path == "-" {
		return fsx.Read(c.in, stdin, maxPlan)
	}
	data, err := fsx.ReadFile(path, maxPlan)
	return data, noPlan(path, err)
}

// planOf reads the plan at path for l on m: placer's own file, or what another program
// takes. l becomes what a plan is for, with its changes. It says when a plan was made for
// a machine of other figures.
func (c *console) planOf(path string, l *loaded, m *hw.Machine) (*plan.Plan, error) {
	p, _, err := c.planFileOf(path, l, m)
	return p, err
}

// planFileOf is planOf with the file, which is nil for the form of another program.
func (c *console) planFileOf(path string, l *loaded, m *hw.Machine) (*plan.Plan, *plan.File, error) {
	data, err := c.readPlacement(path)
	if err != nil {
		return nil, nil, err
	}
	path = inputName(path)
	if p, err := c.otherForm(data, path, l.Graph, m); p != nil || err != nil {
		return p, nil, err
	}
	file, err := plan.Read(bytes.NewReader(data), path)
	if err != nil {
		return nil, nil, err
	}
	if err := l.change(file); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := file.Plan(l.Graph, m)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if !file.SameMachine(m) {
		c.note("%s: the plan was made for %s", path, otherMachine(file, m))
	}
	return p, file, nil
}

// otherForm returns the plan of g in data, the content of the file at path, where that is in the
// form of another program or a schedule; elsewhere nil.
func (c *console) otherForm(data []byte, path string, g *graph.Graph, m *hw.Machine) (*plan.Plan, error) {
	if t, other := formats.IsTarget(data); other {
		p, err := formats.Read(data, path, g, m)
		if err == nil {
			p.Fusion = fusionOf(t, g, p.Device)
		}
		return p, err
	}
	if !schedule.Is(data) {
		return nil, nil
	}
	p, kernel, err := schedule.Read(data, g, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !slices.ContainsFunc(kernel, func(k int) bool { return k > 0 }) {
		return p, nil
	}
	split := 0
	if p.Fusion, split = fuse.NewRules(g).Priorities(p.Device, kernel); split > 0 {
		c.note("%s: %d of its kernels cannot be said by a plan, and count as smaller ones", path, split)
	}
	return p, nil
}

// noPlan returns err, of reading a plan at path, or what path is instead: a run's folder,
// whose plan it names, or the form of another program.
func noPlan(path string, err error) error {
	if err == nil {
		return nil
	}
	if within := filepath.Join(path, search.PlanFile); isFile(within) {
		return fmt.Errorf("%s is a folder; its plan is %s", path, within)
	}
	if isFile(path) {
		if t, ok := targetOf(path); ok {
			return fmt.Errorf("%s is a placement in the form of %s, and a plan is wanted: 'placer search --for' writes both into its run folder", path, t.Name)
		}
	}
	return err
}

// targetOf returns the program in whose form the file at path is.
func targetOf(path string) (formats.Target, bool) {
	data, err := fsx.ReadFile(path, maxPlan)
	if err != nil {
		return formats.Target{}, false // whoever reads a plan says so
	}
	return formats.IsTarget(data)
}

// inForm returns the placement of g at path, where that is in the form of another program or a
// schedule; elsewhere nil.
func (c *console) inForm(path string, g *graph.Graph, m *hw.Machine) (*plan.Plan, error) {
	if !isFile(path) {
		return nil, nil
	}
	data, err := fsx.ReadFile(path, maxPlan)
	if err != nil {
		return nil, nil // whoever reads a plan says so
	}
	p, err := c.otherForm(data, path, g, m)
	if _, other := formats.IsTarget(data); other && p != nil {
		p.Fusion = nil // the search decides on that
	}
	return p, err
}

// otherMachine says what the machine that f was made for has that m, to which it is
// unlike, has not.
func otherMachine(f *plan.File, m *hw.Machine) string {
	if n := len(f.Devices); f.MachineName == m.Name && n != m.NumDevices() {
		var keep []int
		for i := range m.Devices {
			if slices.Contains(f.Devices, m.Devices[i].Name) {
				keep = append(keep, i)
			}
		}
		what := "this one"
		if n < m.NumDevices() && m.Keep(keep).Hash() != f.MachineHash {
			what = "this one, whose figures differ too,"
		}
		return fmt.Sprintf("a machine %s of %s, %s has %d", m.Name, words.Count(n, "device", "devices"), what, m.NumDevices())
	}
	if f.MachineName == m.Name {
		return fmt.Sprintf("a machine %s of other figures than this one", m.Name)
	}
	return fmt.Sprintf("machine %s, whose figures differ from those of %s", f.MachineName, m.Name)
}
