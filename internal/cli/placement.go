package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

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
		return nil, inFolder(path, err)
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
		c.note("%s: the plan was made for %s", path, otherMachine(file, m))
	}
	return p, nil
}

// inFolder returns err, of reading a plan at path, or where that is a run's folder an
// error that names the plan in it.
func inFolder(path string, err error) error {
	if within := filepath.Join(path, search.PlanFile); err != nil && isFile(within) {
		return fmt.Errorf("%s is a folder; its plan is %s", path, within)
	}
	return err
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
		return fmt.Sprintf("a machine %s of %s, %s has %d", m.Name, inWords(n, "device"), what, m.NumDevices())
	}
	if f.MachineName == m.Name {
		return fmt.Sprintf("a machine %s of other figures than this one", m.Name)
	}
	return fmt.Sprintf("machine %s, whose figures differ from those of %s", f.MachineName, m.Name)
}

// inWords is n of what, a noun.
func inWords(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
