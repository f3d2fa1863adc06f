package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"placer/compare"
	"placer/plan"
	"placer/report"
	"placer/workloads"
)

// goBench is an experiment of GO (NeurIPS 2020).
type goBench struct {
	name, short, long string
	claims            func(*compare.Comparison) []report.Claim
	matrix            compare.Matrix // but for seeds and budget
	trial             func(a *attempt, method string) (plan.Plan, plan.Kind, error)
}

func goTable3() goBench {
	return goBench{
		name:  "go-table3",
		short: "GO's table 3: fusion by TensorFlow's default, annealing and the policy",
		long: "go-table3 fixes the human placement and the critical-path scheduler and compares\n" +
			"step times without fusion, with that of TensorFlow's default (with XLA), with what\n" +
			"simulated annealing finds in 20 times the policy's budget, and with what the\n" +
			"policy learns.",
		claims: report.Table3Claims,
		matrix: compare.Matrix{
			Methods: []string{report.NoFusion, report.TFDefault, report.Annealed, report.Learned}, Against: report.NoFusion, Scheduler: criticalPath,
			Cases: benchCases([]string{"v100"}, "gnmt2", "gnmt4", "gnmt8", "rnnlm4", "rnnlm8", "trfxl2", "trfxl4", "trfxl8"),
		},
		trial: table3,
	}
}

func goFigure6() goBench {
	return goBench{
		name:  "go-figure6",
		short: "GO's figure 6: placement, scheduling and fusion alone, in pairs and jointly",
		long: "go-figure6 compares TensorFlow's default, the human expert's placement, and the\n" +
			"policy on each task alone, on each two, on the three one by one with a third of the\n" +
			"budget each (place|schedule|fuse) and on the three together. What is not decided is\n" +
			"the human placement, TensorFlow's FIFO scheduler and its default fusion (with XLA).",
		claims: report.Figure6Claims,
		matrix: compare.Matrix{
			Methods: report.Figure6Methods(), Against: report.TFDefault, Scheduler: fifo,
			Cases: benchCases([]string{"v100", "p100"}, "trfxl2", "trfxl4", "trfxl8", "rnnlm2", "rnnlm4", "rnnlm8", "gnmt2", "gnmt4", "gnmt8"),
		},
		trial: figure6,
	}
}

// benchCases are the workloads with the number of GPUs that the papers give them.
func benchCases(gpus []string, names ...string) (all []compare.Case) {
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

// goBenchFlags are the flags of the commands.
type goBenchFlags struct {
	workloads, gpus     []string
	evaluations, seeds  int
	seed                uint64
	seconds             time.Duration
	workers             int
	out                 string
	json, csv, markdown bool
}

func (c *console) goBenchCommand(b goBench) *cobra.Command {
	var f goBenchFlags
	cmd := &cobra.Command{
		Use:   b.name,
		Short: b.short,
		Long: b.long + "\n\nEach trial is kept in the folder of --out as it ends; the same command goes on\n" +
			"where it was stopped, with other workloads, machine models or seeds it adds to it.",
		Example: "  placer bench " + b.name + " --evaluations 4000 --seeds 6 --out runs/" + b.name + "\n" +
			"  placer bench " + b.name + " --workload trfxl2 --evaluations 500 --markdown",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.goBench(cmd.Context(), b, &f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.workloads, "workload", nil, "some of the workloads, separated by commas; all without it")
	fl.StringSliceVar(&f.gpus, "gpu", nil, "some of the machine models; all without it")
	fl.IntVar(&f.evaluations, "evaluations", 4000, "evaluations of each trial of the policy; 0 with --seconds for none")
	fl.DurationVar(&f.seconds, "seconds", 0, "time of each trial of the policy")
	fl.IntVar(&f.seeds, "seeds", 1, "seeds of each")
	fl.Uint64Var(&f.seed, "seed", 1, "the first seed")
	fl.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "trials that run at once")
	fl.StringVar(&f.out, "out", "", "folder of the trials and the results (default runs/"+b.name+", numbered if taken)")
	fl.BoolVar(&f.json, "json", false, "print one JSON document")
	fl.BoolVar(&f.csv, "csv", false, "print the rows as CSV")
	fl.BoolVar(&f.markdown, "markdown", false, "print Markdown tables")
	exclusive(cmd, "json", "csv", "markdown")
	return cmd
}

// goBench runs b, or the rest of it, and prints what came out.
func (c *console) goBench(ctx context.Context, b goBench, f *goBenchFlags) error {
	m, err := f.matrix(b)
	if err != nil {
		return err
	}
	if f.workers < 1 {
		return usagef("--workers %d: want at least 1", f.workers)
	}
	j, whole, err := openBench(f.out, b.name, m)
	if err != nil {
		return err
	}
	defer j.Close()
	x := &bencher{cases: c.newCases(m), c: c, m: m}
	stopped := compare.Run(ctx, m, j, f.workers, func(ctx context.Context, cell compare.Cell) (t compare.Trial, err error) {
		return x.trial(ctx, b, cell)
	}, func(t *compare.Trial, done, all int) {
		x.cases.ended(t.Case)
		if !c.quiet {
			fmt.Fprintf(c.err, "%7.1f s  %d of %d  %s, %s, seed %d: %s\n", c.clock(), done, all, t.Case, t.Method, t.Seed, outcome(t, plan.Step))
		}
	})
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	comparison := compare.Summarise(*whole, j.Trials())
	doc := &report.Bench{Format: report.BenchFormat, Bench: b.name, Claims: b.claims(comparison), Comparison: comparison}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{compare.ResultFile, func(w io.Writer) error { return report.WriteJSON(w, comparison) }},
		{compare.CSVFile, func(w io.Writer) error { return report.WriteComparisonCSV(w, comparison) }},
		{compare.TextFile, doc.WriteMarkdown},
	} {
		if err := j.Write(file.name, file.write); err != nil {
			return err
		}
	}
	switch {
	case f.json:
		err = report.WriteJSON(c.out, doc)
	case f.csv:
		err = report.WriteComparisonCSV(c.out, comparison)
	case f.markdown:
		err = doc.WriteMarkdown(c.out)
	default:
		err = doc.WriteText(c.out)
	}
	if err != nil {
		return err
	}
	if stopped != nil {
		fmt.Fprintf(c.err, "placer: interrupted; to go on: the same command with --out %s\n", j.Dir())
		return fmt.Errorf("%w: %w", errQuiet, stopped)
	}
	if !c.quiet {
		fmt.Fprintf(c.err, "placer: results in %s\n", j.Dir())
	}
	return nil
}

// matrix returns b's matrix with what the flags say.
func (f *goBenchFlags) matrix(b goBench) (*compare.Matrix, error) {
	m := b.matrix
	m.Format, m.Evaluations, m.Seconds = compare.MatrixFormat, f.evaluations, f.seconds.Seconds()
	for _, wanted := range []struct {
		flag  string
		names []string
		of    func(compare.Case) string
	}{
		{"workload", f.workloads, func(x compare.Case) string { return x.Workload }},
		{"gpu", f.gpus, func(x compare.Case) string { return x.GPU }},
	} {
		for _, name := range wanted.names {
			if !slices.ContainsFunc(b.matrix.Cases, func(x compare.Case) bool { return wanted.of(x) == name }) {
				return nil, usagef("--%s %s: not in %s", wanted.flag, name, b.name)
			}
		}
		m.Cases = slices.DeleteFunc(slices.Clone(m.Cases), func(x compare.Case) bool {
			return len(wanted.names) > 0 && !slices.Contains(wanted.names, wanted.of(x))
		})
	}
	if f.seeds < 1 {
		return nil, usagef("--seeds %d: want at least 1", f.seeds)
	}
	for k := range f.seeds {
		m.Seeds = append(m.Seeds, f.seed+uint64(k))
	}
	if err := m.Validate(); err != nil {
		return nil, usageError{err}
	}
	return &m, nil
}

// openBench opens the folder of an earlier run, or makes one, for the cells of m
// beside those it has, and returns the matrix of both.
func openBench(dir, name string, m *compare.Matrix) (*compare.Journal, *compare.Matrix, error) {
	if dir == "" {
		var err error
		if dir, err = freeFolder(name); err != nil {
			return nil, nil, err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, compare.MatrixFile)); errors.Is(err, fs.ErrNotExist) {
		j, err := compare.Create(dir, m)
		return j, m, err
	}
	j, old, err := compare.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	whole, err := old.With(m)
	if err != nil {
		j.Close()
		return nil, nil, usagef("%s holds a run with other flags than --workload, --gpu and --seeds: name another folder", dir)
	}
	if err := j.Grow(whole); err != nil {
		j.Close()
		return nil, nil, err
	}
	return j, whole, nil
}
