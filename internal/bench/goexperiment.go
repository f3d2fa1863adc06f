package bench

import (
	"io"
	"slices"

	"placer/internal/compare"
	"placer/internal/report"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// GO is an experiment of GO (NeurIPS 2020).
type GO struct {
	Name   string
	Matrix compare.Matrix // but for seeds and budget
	claims func(*compare.Comparison) []report.Claim
	trial  func(a *attempt, method string) (plan.Decision, plan.Kind, error)
}

// GOTable3 fixes the human placement and the critical-path scheduler and compares
// fusions.
func GOTable3() GO {
	return GO{
		Name: "go-table3",
		Matrix: compare.Matrix{
			Methods: []string{report.NoFusion, report.TFDefault, report.Annealed, report.Learned}, Against: report.NoFusion, Scheduler: string(problem.CriticalPath),
			Cases: publishedCases([]string{"v100"}, "gnmt2", "gnmt4", "gnmt8", "rnnlm4", "rnnlm8", "trfxl2", "trfxl4", "trfxl8"),
		},
		claims: report.Table3Claims,
		trial:  table3,
	}
}

// GOFigure6 compares the policy on each task alone, in pairs and jointly.
func GOFigure6() GO {
	return GO{
		Name: "go-figure6",
		Matrix: compare.Matrix{
			Methods: report.Figure6Methods(), Against: report.TFDefault, Scheduler: string(problem.FIFO),
			Cases: publishedCases([]string{"v100", "p100"}, "trfxl2", "trfxl4", "trfxl8", "rnnlm2", "rnnlm4", "rnnlm8", "gnmt2", "gnmt4", "gnmt8"),
		},
		claims: report.Figure6Claims,
		trial:  figure6,
	}
}

// publishedCases are the workloads with the number of GPUs that the papers give
// them.
func publishedCases(gpus []string, names ...string) (all []compare.Case) {
	for _, gpu := range gpus {
		for _, name := range names {
			spec, err := workloads.Lookup(name)
			if err != nil {
				panic(err)
			}
			all = append(all, compare.Case{Workload: name, GPU: gpu, GPUs: spec.GPUs})
		}
	}
	return all
}

// GORun says how much of an experiment is run.
type GORun struct {
	Workloads, GPUs []string // some of the cases; all where empty
	Evaluations     int      // of each trial of the policy
	Seconds         float64
	Seeds           int
	Seed            uint64 // the first one
}

// Select returns the cells that r asks for.
func (g GO) Select(r GORun) (*compare.Matrix, error) {
	m := g.Matrix
	m.Format, m.Evaluations, m.Seconds = compare.MatrixFormat, r.Evaluations, r.Seconds
	for _, wanted := range []struct {
		flag  string
		names []string
		of    func(compare.Case) string
	}{
		{"workload", r.Workloads, func(x compare.Case) string { return x.Workload }},
		{"gpu", r.GPUs, func(x compare.Case) string { return x.GPU }},
	} {
		for _, name := range wanted.names {
			if !slices.ContainsFunc(g.Matrix.Cases, func(x compare.Case) bool { return wanted.of(x) == name }) {
				return nil, ConfigErrorf("--%s %s: not in %s", wanted.flag, name, g.Name)
			}
		}
		m.Cases = slices.DeleteFunc(slices.Clone(m.Cases), func(x compare.Case) bool {
			return len(wanted.names) > 0 && !slices.Contains(wanted.names, wanted.of(x))
		})
	}
	var err error
	if m.Seeds, err = Seeds(r.Seed, r.Seeds); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, ConfigError{err}
	}
	return &m, nil
}

// Seeds returns n seeds from first on.
func Seeds(first uint64, n int) (all []uint64, err error) {
	if n < 1 {
		return nil, ConfigErrorf("--seeds %d: want at least 1", n)
	}
	for k := range n {
		all = append(all, first+uint64(k))
	}
	return all, nil
}

// Tables returns what the experiment's trials came to, beside what it claims.
func (g GO) Tables(c *compare.Comparison) Tables {
	return goTables{&report.Bench{Format: report.BenchFormat, Bench: g.Name, Claims: g.claims(c), Comparison: c}}
}

type goTables struct{ *report.Bench }

// WriteCSV writes the rows of the comparison.
func (t goTables) WriteCSV(w io.Writer) error { return report.WriteComparisonCSV(w, t.Comparison) }
