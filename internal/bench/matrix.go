package bench

import (
	"fmt"
	"path/filepath"
	"slices"

	"placer/graph/formats"
	"placer/internal/compare"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// Matrix says what a comparison runs: every combination of what is named.
type Matrix struct {
	compare.Matrix                     // without its cases and seeds
	Workloads, Graphs []string         // built-in ones, and files
	Dims              map[string]int64 // sizes that the files leave open by name
	Machines, GPUs    []string         // files, and built-in ones, which are for where there are no files
	Counts            []int            // of GPUs; empty: what the papers use a workload with, or all
	SeedCount         int
	Seed              uint64 // the first one
	// Named says that the machine of a graph file with times of its own is not taken.
	Named bool
}

// Build returns the matrix, or the first fault.
func (f *Matrix) Build() (*compare.Matrix, error) {
	m := f.Matrix
	m.Format = compare.MatrixFormat
	if m.Objective == plan.Step {
		m.Objective = "" // as the files have it
	}
	m.Methods = slices.Clone(m.Methods)
	for k, name := range m.Methods {
		var err error
		if m.Methods[k], err = nameOf(name); err != nil {
			return nil, ConfigError{err}
		}
	}
	if m.Against != "" {
		if name, err := nameOf(m.Against); err == nil { // else Validate says that no method has it
			m.Against = name
		}
	}
	if m.Against == "" && len(m.Methods) > 0 {
		if m.Against = m.Methods[0]; slices.Contains(m.Methods, "human") {
			m.Against = "human"
		}
	}
	var err error
	if m.Seeds, err = Seeds(f.Seed, f.SeedCount); err != nil {
		return nil, err
	}
	switch {
	case m.Evaluations < 0 || m.Seconds < 0 || m.Evaluations == 0 && m.Seconds == 0:
		return nil, ConfigErrorf("name a budget by --evaluations or --seconds")
	case len(f.Workloads)+len(f.Graphs) == 0:
		return nil, ConfigErrorf("name graphs by --workload or --graph")
	case len(f.Dims) > 0 && len(f.Graphs) == 0:
		return nil, ConfigErrorf("--dim is for graph files; workloads take settings as in rnnlm:layers=2,unroll=3")
	}
	if err := CheckOptions(&problem.Options{Scheduler: problem.Scheduler(m.Scheduler), Objective: m.Objective, Contention: m.Contention}); err != nil {
		return nil, err
	}
	for _, name := range f.Workloads {
		spec, err := workloads.Lookup(name)
		if err != nil {
			return nil, ConfigError{err}
		}
		m.Cases = append(m.Cases, f.casesOf(compare.Case{Workload: name, GPUs: spec.GPUs}, false)...)
	}
	for _, path := range f.Graphs {
		form, err := formats.SniffFile(path)
		if err != nil {
			return nil, err
		}
		m.Cases = append(m.Cases, f.casesOf(compare.Case{Graph: path, Dims: compare.DimsText(f.Dims)}, form.Machine && !f.Named)...)
	}
	if err := m.Validate(); err != nil {
		return nil, ConfigError{err}
	}
	return &m, nil
}

// Resumable returns nil if a comparison can go on with m, the matrix of the folder dir. What
// an experiment of GO left there is its own: methods of the catalogue's names mean something
// else in it.
func Resumable(m *compare.Matrix, dir string) error {
	for _, g := range []GO{GOTable3(), GOFigure6()} {
		if slices.Equal(m.Methods, g.Matrix.Methods) {
			return ConfigErrorf("%s is a folder of bench %s, which goes on with it: placer bench %s%s --out %s", dir, g.Name, g.Name, budgetFlags(m), dir)
		}
	}
	for _, name := range m.Methods {
		if _, err := nameOf(name); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, compare.MatrixFile), err)
		}
	}
	return nil
}

// budgetFlags returns the flags of the budget and the seeds that m has.
func budgetFlags(m *compare.Matrix) (flags string) {
	flags = fmt.Sprintf(" --evaluations %d", m.Evaluations)
	if m.Seconds > 0 {
		flags += fmt.Sprintf(" --seconds %gs", m.Seconds)
	}
	return flags + fmt.Sprintf(" --seeds %d", len(m.Seeds))
}

// casesOf returns the cases of the graph of c. Where no flag says how many GPUs, a built-in
// machine has c.GPUs of them, and a machine file says itself what there is, the CPU too; own
// is for a graph file on the machine that it brings.
func (f *Matrix) casesOf(c compare.Case, own bool) (all []compare.Case) {
	counts := f.Counts
	if len(counts) == 0 {
		if len(f.Machines) > 0 {
			c.GPUs = 0
		}
		counts = []int{c.GPUs}
	}
	for _, n := range counts {
		if own {
			c.GPUs = n
			all = append(all, c)
			continue
		}
		for _, file := range f.Machines {
			all = append(all, compare.Case{Workload: c.Workload, Graph: c.Graph, Dims: c.Dims, Machine: file, GPUs: n})
		}
		for _, gpu := range f.GPUs {
			if len(f.Machines) == 0 {
				all = append(all, compare.Case{Workload: c.Workload, Graph: c.Graph, Dims: c.Dims, GPU: gpu, GPUs: n})
			}
		}
	}
	return all
}
