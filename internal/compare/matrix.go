package compare

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"placer/internal/faults"
	"placer/plan"
)

// MatrixFormat names the version of Matrix as a JSON document.
const MatrixFormat = "placer compare matrix 1"

// Case is a graph on a machine.
type Case struct {
	Workload string `json:"workload,omitempty"` // as "placer workloads" names it
	Graph    string `json:"graph,omitempty"`    // or the path of a file
	GPU      string `json:"gpu,omitempty"`      // built-in machine, as "placer machines" names it
	Machine  string `json:"machine,omitempty"`  // or the path of a file
	GPUs     int    `json:"gpus,omitempty"`     // 0: all
	Dims     string `json:"dims,omitempty"`     // sizes that the file leaves open, as DimsText writes them
	// A graph file with times of its own may name neither: its machine is the file's.
}

// Name returns the case in a few words, as "gnmt8 on p100x8".
func (c Case) Name() string {
	name := c.Workload + c.Graph
	if c.Dims != "" {
		name += "[" + c.Dims + "]"
	}
	name += " on " + c.GPU + c.Machine
	if c.Own() {
		name += "its own machine"
		if c.GPUs > 0 {
			name += ", "
		}
	}
	if c.GPUs > 0 {
		name += fmt.Sprintf("x%d", c.GPUs)
	}
	return name
}

// DimsText writes sizes by name, "batch=32,seq=128", in the order of the names.
func DimsText(dims map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(dims)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, dims[name]))
	}
	return strings.Join(parts, ",")
}

// Sizes returns the sizes of Dims by name, nil for none.
func (c Case) Sizes() (map[string]int64, error) {
	if c.Dims == "" {
		return nil, nil
	}
	dims := map[string]int64{}
	for part := range strings.SplitSeq(c.Dims, ",") {
		name, size, ok := strings.Cut(part, "=")
		n, err := strconv.ParseInt(size, 10, 64)
		if !ok || err != nil || n < 1 {
			return nil, fmt.Errorf("dims %q: want sizes of at least 1, as batch=32,seq=128", c.Dims)
		}
		dims[name] = n
	}
	return dims, nil
}

// Own reports whether the machine is that of the graph's file.
func (c Case) Own() bool { return c.Graph != "" && c.GPU == "" && c.Machine == "" }

// Matrix is what a comparison runs: every method on every case with every seed.
type Matrix struct {
	Format    string   `json:"format"`
	Methods   []string `json:"methods"`
	Cases     []Case   `json:"cases"`
	Seeds     []uint64 `json:"seeds"`
	Scheduler string   `json:"scheduler"`
	// Objective is what trials are judged by; the step time where it is empty.
	Objective plan.Objective `json:"objective,omitempty"`
	// Contention is how transfers share links; empty: as each graph's file says, or
	// first come first served.
	Contention string `json:"contention,omitempty"`
	// Against is the method that reductions, wins and regressions are relative to.
	Against string `json:"against"`
	// The budget of every trial; 0 does not bound.
	Evaluations int     `json:"evaluations"`
	Seconds     float64 `json:"seconds"`
}

// Budget returns the budget of every trial.
func (m *Matrix) Budget() plan.Budget {
	return plan.Budget{Evaluations: m.Evaluations, Seconds: m.Seconds}
}

// Validate reports every fault.
func (m *Matrix) Validate() error {
	var errs faults.List
	errs.If(m.Format != MatrixFormat, "format is %q, want %q", m.Format, MatrixFormat)
	errs.If(len(m.Methods) == 0 || len(m.Cases) == 0 || len(m.Seeds) == 0, "nothing to run: %d methods, %d cases, %d seeds", len(m.Methods), len(m.Cases), len(m.Seeds))
	errs.If(m.Evaluations < 0 || m.Seconds < 0 || m.Evaluations == 0 && m.Seconds == 0, "budget of %d evaluations and %g s, want one above 0 and none below", m.Evaluations, m.Seconds)
	if _, err := plan.ParseObjective(string(m.Objective.Normal())); err != nil {
		errs = append(errs, err)
	}
	errs.If(!slices.Contains(m.Methods, m.Against), "reference %q is not among the methods", m.Against)
	names := map[string]bool{}
	for _, x := range m.Methods {
		errs.If(names[x], "method %s is listed twice", x)
		names[x] = true
	}
	cases := map[string]bool{}
	for _, x := range m.Cases {
		errs.If((x.Workload == "") == (x.Graph == "") || (x.GPU == "") == (x.Machine == "") && !x.Own() || x.GPUs < 0, "case %q: want a workload or a graph, a GPU or a machine", x.Name())
		errs.If(cases[x.Name()], "case %s is listed twice", x.Name())
		cases[x.Name()] = true
	}
	seeds := map[uint64]bool{}
	for _, x := range m.Seeds {
		errs.If(seeds[x], "seed %d is listed twice", x)
		seeds[x] = true
	}
	return errors.Join(errs...)
}

// With returns m with the cases and seeds of o that it lacks. What else differs is
// an error.
func (m *Matrix) With(o *Matrix) (*Matrix, error) {
	all := *m
	all.Cases, all.Seeds = o.Cases, o.Seeds
	if !reflect.DeepEqual(&all, o) {
		return nil, errors.New("comparisons differ in more than cases and seeds")
	}
	all.Cases, all.Seeds = slices.Clone(m.Cases), slices.Clone(m.Seeds)
	for _, x := range o.Cases {
		if !slices.Contains(all.Cases, x) {
			all.Cases = append(all.Cases, x)
		}
	}
	for _, x := range o.Seeds {
		if !slices.Contains(all.Seeds, x) {
			all.Seeds = append(all.Seeds, x)
		}
	}
	return &all, all.Validate()
}

// Cell is one trial to run.
type Cell struct {
	Case   string `json:"case"`
	Method string `json:"method"`
	Seed   uint64 `json:"seed"`
}

// Cells returns the cells of m, case by case, so that a case's graph is needed
// during one stretch only.
func (m *Matrix) Cells() []Cell {
	var cells []Cell
	for _, c := range m.Cases {
		for _, seed := range m.Seeds {
			for _, method := range m.Methods {
				cells = append(cells, Cell{c.Name(), method, seed})
			}
		}
	}
	return cells
}
