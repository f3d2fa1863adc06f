package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/baselines/catalogue"
	"placer/compare"
	"placer/plan"
	"placer/report"
	"placer/workloads"
)

// compareFlags are the flags of the compare command.
type compareFlags struct {
	workloads, graphs, methods []string
	machines, gpus             []string
	counts                     []int
	seeds                      int
	seed                       uint64
	evaluations                int
	seconds                    time.Duration
	scheduler, against         string
	judging                    judging // its scheduler is unused
	named                      bool    // --gpu or --machine: do not take the machine of a graph file
	workers                    int
	out, resume, audit         string
	list, json, csv, markdown  bool
}

func (c *console) compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Run methods on graphs, machines and seeds at one budget, side by side",
		Long: "compare runs every method on every case with every seed at the same budget and\n" +
			"prints medians with intervals, wins and losses, the worst regression and the gap\n" +
			"to the proven bound. Each trial is kept as it ends: a stopped comparison goes on\n" +
			"with --resume. NAME*4 runs a method at four times the budget.\n\n" +
			"--audit recomputes every aggregate of a results file from the times in it.",
		Example: "  placer compare --workload rnnlm2,gnmt2 --methods human,metis,anneal,hdp,GO-one --evaluations 2000\n" +
			"  placer compare --graph model.onnx --gpu a100,h100 --gpus 2,4 --seconds 30s --seeds 6 --out a100\n" +
			"  placer compare --resume a100 --markdown\n" +
			"  placer compare --audit a100/compare.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.list:
				return c.listMethods(f.json)
			case f.audit != "":
				return c.audit(f.audit)
			}
			return c.compare(cmd.Context(), cmd, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.workloads, "workload", nil, "built-in workloads, separated by commas")
	fl.StringSliceVar(&f.graphs, "graph", nil, "graph files")
	fl.StringSliceVar(&f.machines, "machine", nil, "machine files")
	fl.StringSliceVar(&f.gpus, "gpu", []string{"p100"}, "built-in machines, as 'placer machines' lists them")
	fl.IntSliceVar(&f.counts, "gpus", nil, "GPU counts; without it what the papers use a workload with, or all")
	fl.StringSliceVar(&f.methods, "methods", []string{"human", "metis", "anneal", "GO-one"}, "methods, as --list prints them; 'search' is the whole of placer search")
	fl.IntVar(&f.seeds, "seeds", 6, "seeds of each")
	fl.Uint64Var(&f.seed, "seed", 1, "the first seed")
	fl.IntVar(&f.evaluations, "evaluations", 0, "evaluations of each trial")
	fl.DurationVar(&f.seconds, "seconds", 0, "time of each trial")
	fl.StringVar(&f.scheduler, "scheduler", criticalPath, "order in which a device runs its ready ops, for every method: critical-path or fifo")
	f.judging.add(cmd)
	fl.StringVar(&f.against, "against", "", "method that the others are measured against (default human, or the first)")
	fl.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "trials that run at once")
	fl.StringVar(&f.out, "out", "", "folder of the comparison (default runs/compare, numbered if taken)")
	fl.StringVar(&f.resume, "resume", "", "go on with the comparison in this folder")
	fl.StringVar(&f.audit, "audit", "", "recompute every aggregate of this results file and report what differs")
	fl.BoolVar(&f.list, "list", false, "list the methods")
	fl.BoolVar(&f.json, "json", false, "print one JSON document")
	fl.BoolVar(&f.csv, "csv", false, "print the rows as CSV")
	fl.BoolVar(&f.markdown, "markdown", false, "print Markdown tables")
	exclusive(cmd, "json", "csv", "markdown")
	exclusive(cmd, "out", "resume", "audit", "list")
	return cmd
}

// compare runs a new comparison or the rest of an old one and prints it.
func (c *console) compare(ctx context.Context, cmd *cobra.Command, f *compareFlags) error {
	if f.workers < 1 {
		return usagef("--workers %d: want at least 1", f.workers)
	}
	j, m, err := c.openComparison(cmd, f)
	if err != nil {
		return err
	}
	defer j.Close()
	cases := c.newCases(m)
	stopped := compare.Run(ctx, m, j, f.workers, cases.trial, func(t *compare.Trial, done, all int) {
		cases.ended(t.Case)
		if !c.quiet {
			fmt.Fprintf(c.err, "%7.1f s  %d of %d  %s, %s, seed %d: %s\n", c.clock(), done, all, t.Case, t.Method, t.Seed, outcome(t, m.Objective))
		}
	})
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	result := compare.Summarise(*m, j.Trials())
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{compare.ResultFile, func(w io.Writer) error { return report.WriteJSON(w, result) }},
		{compare.CSVFile, func(w io.Writer) error { return report.WriteComparisonCSV(w, result) }},
		{compare.TextFile, func(w io.Writer) error { return report.WriteComparisonMarkdown(w, result) }},
	} {
		if err := j.Write(file.name, file.write); err != nil {
			return err
		}
	}
	if err := c.printComparison(f, result); err != nil {
		return err
	}
	if stopped != nil {
		fmt.Fprintf(c.err, "placer: interrupted; to go on: placer compare --resume %s\n", j.Dir())
		return fmt.Errorf("%w: %w", errQuiet, stopped)
	}
	if !c.quiet {
		fmt.Fprintf(c.err, "placer: results in %s\n", j.Dir())
	}
	return nil
}

func (c *console) printComparison(f *compareFlags, result *compare.Comparison) error {
	switch {
	case f.json:
		return report.WriteJSON(c.out, result)
	case f.csv:
		return report.WriteComparisonCSV(c.out, result)
	case f.markdown:
		return report.WriteComparisonMarkdown(c.out, result)
	}
	return report.WriteComparison(c.out, result)
}

// outcome says in a few words what a trial came to.
func outcome(t *compare.Trial, o plan.Objective) string {
	switch {
	case t.Skipped != "":
		return "unavailable: " + t.Skipped
	case !t.Feasible():
		return "does not fit"
	}
	return report.Value(o, t.StepTime)
}

// openComparison opens the folder that --resume names, or makes a new one for
// the matrix that the flags describe. Nothing is written before every input has
// been found.
func (c *console) openComparison(cmd *cobra.Command, f *compareFlags) (*compare.Journal, *compare.Matrix, error) {
	if f.resume != "" {
		for _, name := range []string{"workload", "graph", "machine", "gpu", "gpus", "methods", "seeds", "seed", "evaluations", "seconds", "scheduler", "objective", "contention", "against"} {
			if cmd.Flags().Changed(name) {
				return nil, nil, usagef("--resume takes --%s from the comparison's own folder", name)
			}
		}
		return compare.Open(f.resume)
	}
	f.named = cmd.Flags().Changed("gpu") || len(f.machines) > 0
	m, err := f.matrix()
	if err != nil {
		return nil, nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, nil, usageError{err}
	}
	if f.out != "" {
		j, err := compare.Create(f.out, m)
		return j, m, err
	}
	dir, err := freeFolder("compare")
	if err != nil {
		return nil, nil, err
	}
	j, err := compare.Create(dir, m)
	return j, m, err
}

// matrix returns what the flags ask for.
func (f *compareFlags) matrix() (*compare.Matrix, error) {
	m := &compare.Matrix{Format: compare.MatrixFormat, Methods: f.methods, Scheduler: f.scheduler, Against: f.against, Evaluations: f.evaluations, Seconds: f.seconds.Seconds(), Contention: f.judging.contention}
	if f.judging.objective.Normal() != plan.Step {
		m.Objective = f.judging.objective
	}
	if m.Against == "" && len(f.methods) > 0 {
		if m.Against = f.methods[0]; slices.Contains(f.methods, "human") {
			m.Against = "human"
		}
	}
	switch {
	case f.seeds < 1:
		return nil, usagef("--seeds %d: want at least 1", f.seeds)
	case f.evaluations < 0 || f.seconds < 0 || f.evaluations == 0 && f.seconds == 0:
		return nil, usagef("name a budget by --evaluations or --seconds")
	case f.scheduler != criticalPath && f.scheduler != fifo:
		return nil, usagef("unknown scheduler %q, want %s or %s", f.scheduler, criticalPath, fifo)
	case len(f.workloads)+len(f.graphs) == 0:
		return nil, usagef("name graphs by --workload or --graph")
	}
	if err := f.judging.check(); err != nil {
		return nil, err
	}
	for k := range f.seeds {
		m.Seeds = append(m.Seeds, f.seed+uint64(k))
	}
	for _, name := range f.methods {
		if name == wholeSearch {
			continue
		}
		if _, _, err := parseMethod(name); err != nil {
			return nil, usageError{err}
		}
	}
	for _, name := range splitWorkloads(f.workloads) {
		spec, err := workloads.Lookup(name)
		if strings.Contains(name, ":") {
			_, err = workloads.Parse(name)
		}
		if err != nil {
			return nil, usageError{err}
		}
		m.Cases = append(m.Cases, f.casesOf(compare.Case{Workload: name, GPUs: spec.GPUs}, false)...)
	}
	for _, path := range f.graphs {
		own, err := bringsMachine(path)
		if err != nil {
			return nil, err
		}
		m.Cases = append(m.Cases, f.casesOf(compare.Case{Graph: path}, own && !f.named)...)
	}
	return m, nil
}

// casesOf returns the cases of the graph of c, on c.GPUs GPUs where no flag
// says how many; own is for a graph file on the machine that it brings.
func (f *compareFlags) casesOf(c compare.Case, own bool) (all []compare.Case) {
	counts := f.counts
	if len(counts) == 0 {
		counts = []int{c.GPUs}
	}
	for _, n := range counts {
		if own {
			c.GPUs = n
			all = append(all, c)
			continue
		}
		for _, file := range f.machines {
			all = append(all, compare.Case{Workload: c.Workload, Graph: c.Graph, Machine: file, GPUs: n})
		}
		for _, gpu := range f.gpus {
			if len(f.machines) == 0 {
				all = append(all, compare.Case{Workload: c.Workload, Graph: c.Graph, GPU: gpu, GPUs: n})
			}
		}
	}
	return all
}

// splitWorkloads splits lists of workloads at the commas that do not belong to
// a workload's settings: in "gnmt2,rnnlm:layers=2,unroll=3" those before what
// has no "=" ahead of a ":".
func splitWorkloads(lists []string) (names []string) {
	for _, list := range lists {
		for _, part := range strings.Split(list, ",") {
			equals, colon := strings.Index(part, "="), strings.Index(part, ":")
			if equals >= 0 && colon < 0 && len(names) > 0 {
				names[len(names)-1] += "," + part
				continue
			}
			names = append(names, part)
		}
	}
	return names
}

// listMethods prints the catalogue.
func (c *console) listMethods(asJSON bool) error {
	doc := &report.Methods{Format: report.MethodsFormat}
	for _, m := range catalogue.Methods() {
		doc.Methods = append(doc.Methods, report.Method{Name: m.Name, Kind: m.Kind, About: m.About, Source: m.Source, Needs: m.Needs})
	}
	if asJSON {
		return report.WriteJSON(c.out, doc)
	}
	return doc.WriteText(c.out)
}

// audit recomputes the aggregates of the results file at path.
func (c *console) audit(path string) error {
	var data []byte
	var err error
	if path == "-" {
		path = "stdin"
		data, err = io.ReadAll(c.in)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return err
	}
	found, checked, err := report.Audit(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, m := range found {
		fmt.Fprintf(c.out, "%s: %s\n", path, m)
	}
	if len(found) > 0 {
		return fmt.Errorf("%s: %d of %d figures differ from what the file's own times give", path, len(found), checked)
	}
	fmt.Fprintf(c.out, "%s: %d figures agree with the file's own times\n", path, checked)
	return nil
}
