package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/internal/bench"
	"placer/internal/compare"
	"placer/internal/jsonx"
	"placer/internal/report"
	"placer/internal/words"
	"placer/placer/methods"
	"placer/placer/problem"
)

// compareFlags are the flags of the compare command.
type compareFlags struct {
	bench.Matrix
	workloads          []string // lists
	seconds            time.Duration
	workers            int
	out, resume, audit string
	html               string
	list               bool
	forTarget          string
	form               formFlags
}

func (c *console) compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare methods on graphs, machines and seeds at equal budget",
		Long: "compare runs every method on every case (a graph on a machine) with every seed at the\n" +
			"same budget. It prints medians with intervals, wins and losses, the worst regression\n" +
			"and the gap to the proven bound. Each trial is saved when it ends; --resume continues\n" +
			"a comparison that was stopped. NAME*4 runs a method at four times the budget.\n\n" +
			"--audit recomputes every aggregate of a results file from the times in it.",
		Example: "  placer compare --workload rnnlm2,gnmt2 --methods human,metis,anneal,hdp,GO-one --evaluations 2000\n" +
			"  placer compare --graph model.onnx --gpu a100,h100 --gpus 2,4 --seconds 30s --seeds 6 --out a100\n" +
			"  placer compare --resume a100 --markdown\n" +
			"  placer compare --audit a100/compare.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.list:
				if err := uselessBut(cmd, "list", "json"); err != nil {
					return err
				}
				return c.listMethods(f.form.json)
			case f.audit != "":
				if err := uselessBut(cmd, "audit"); err != nil {
					return err
				}
				return c.audit(f.audit)
			}
			return c.compare(cmd.Context(), cmd, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.workloads, "workload", nil, "built-in workloads, separated by commas")
	fl.StringSliceVar(&f.Graphs, "graph", nil, "graph `FILE`s, separated by commas")
	addDims(fl, &f.Dims)
	fl.StringSliceVar(&f.Machines, "machine", nil, "machine `FILE`s, separated by commas")
	fl.StringSliceVar(&f.GPUs, "gpu", []string{"p100"}, "built-in machines, as 'placer machines' lists them")
	fl.IntSliceVar(&f.Counts, "gpus", nil, "GPU counts; without it what the papers use a workload with, or all")
	fl.StringSliceVar(&f.Methods, "methods", []string{"human", "metis", "anneal", "GO-one"}, "methods, as --list prints them; 'search' is the whole of placer search")
	fl.StringVar(&f.forTarget, "for", "", "add the split that this program makes itself, and the best of its form: "+strings.Join(slices.Sorted(maps.Keys(rivalsFor)), ", "))
	fl.IntVar(&f.SeedCount, "seeds", 6, "how many seeds each case and method runs with")
	fl.Uint64Var(&f.Seed, "seed", 1, "the first seed")
	fl.IntVar(&f.Evaluations, "evaluations", 0, "budget of each trial in evaluations; this or --seconds has to be given")
	fl.DurationVar(&f.seconds, "seconds", 0, "budget of each trial as a `TIME`, 30s for one; --budget is the same flag")
	alias(fl, "budget", "seconds")
	fl.StringVar(&f.Scheduler, "scheduler", string(problem.CriticalPath), "order in which a device runs its ready ops, for every method: critical-path or fifo")
	addJudging(fl, &f.Objective, &f.Contention)
	fl.StringVar(&f.Against, "against", "", "method that the others are measured against (default human, or the first)")
	addWorkers(fl, &f.workers, "trials that run at once")
	fl.StringVar(&f.out, "out", "", "folder of the comparison (default runs/compare, numbered if taken)")
	fl.StringVar(&f.resume, "resume", "", "continue the comparison in this folder")
	fl.StringVar(&f.audit, "audit", "", "recompute every aggregate of this results file and report what differs")
	fl.BoolVar(&f.list, "list", false, "list the methods")
	f.form.add(cmd)
	fl.StringVar(&f.html, "html", "", "write a web page of charts there too")
	exclusive(cmd, "out", "resume", "audit", "list")
	exclusive(cmd, "machine", "gpu")
	beside(fl, "resume", "workers", "json", "csv", "markdown", "html")
	return cmd
}

// rivalsFor are the methods that belong to a comparison for a program: what it does by
// itself, and the best split of its form.
var rivalsFor = map[string][]string{
	"accelerate": {"accelerate", "layers"}, "vllm": {"vllm", "layers"}, "llama.cpp": {"llama.cpp", "n-cpu-moe", "layers"},
	"torch-pipelining": {"torchtitan", "layers"}, "deepspeed": {"torchtitan", "layers"},
}

// compare runs a new comparison or the rest of an old one and prints it.
func (c *console) compare(ctx context.Context, cmd *cobra.Command, f *compareFlags) error {
	if err := fileOnly("--html", f.html); err != nil {
		return err
	}
	j, m, err := c.openComparison(cmd, f)
	if err != nil {
		return err
	}
	defer j.Close()
	doc, stopped := bench.Run(ctx, m, m, j, f.workers, bench.NewCases(m, bench.SameInputs(j, c.loadCase), c.clock), bench.NewComparison, c.bench())
	if err := c.printTables(&f.form, doc, j.Dir(), stopped, "placer compare --resume"); err != nil || f.html == "" {
		return err
	}
	return c.reportComparison(filepath.Join(j.Dir(), compare.ResultFile), f.html)
}

// openComparison opens the folder that --resume names, or makes a new one for
// the matrix that the flags describe. Nothing is written before every input has
// been found.
func (c *console) openComparison(cmd *cobra.Command, f *compareFlags) (*compare.Journal, *compare.Matrix, error) {
	if f.workers < 1 {
		return nil, nil, usagef("--workers %d: want at least 1", f.workers)
	}
	if f.resume != "" {
		if err := notBesideResume(cmd, "the comparison's own folder"); err != nil {
			return nil, nil, err
		}
		return resumeComparison(f.resume)
	}
	if slices.Contains(append(slices.Clone(f.Graphs), f.Machines...), "-") {
		return nil, nil, usagef("compare reads graphs and machines when their trials begin, and again where it is resumed: name files, not -")
	}
	f.Named = cmd.Flags().Changed("gpu") || len(f.Machines) > 0
	f.Workloads, f.Seconds = splitWorkloads(f.workloads), f.seconds.Seconds()
	if f.forTarget != "" {
		rivals, ok := rivalsFor[f.forTarget]
		if !ok {
			return nil, nil, usagef("--for %s: want %s", f.forTarget, strings.Join(slices.Sorted(maps.Keys(rivalsFor)), ", "))
		}
		for _, name := range rivals {
			if !slices.Contains(f.Methods, name) {
				f.Methods = append(f.Methods, name)
			}
		}
	}
	m, err := f.Build()
	if err != nil {
		return nil, nil, err
	}
	dir := f.out
	if dir == "" {
		if dir, err = freeFolder("compare"); err != nil {
			return nil, nil, err
		}
	}
	j, err := compare.Create(dir, m)
	return j, m, err
}

// resumeComparison opens the folder of an earlier comparison, of methods that there are.
func resumeComparison(dir string) (*compare.Journal, *compare.Matrix, error) {
	j, m, err := compare.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := bench.Resumable(m, dir); err != nil {
		j.Close()
		return nil, nil, err
	}
	return j, m, nil
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
	for _, m := range methods.Methods() {
		doc.Methods = append(doc.Methods, report.Method{Name: m.Name, Kind: m.Kind, About: m.About, Source: m.Source, Needs: m.Needs})
	}
	if asJSON {
		return jsonx.Write(c.out, doc)
	}
	return c.writeText(doc.WriteText)
}

// audit recomputes the aggregates of the results file at path.
func (c *console) audit(path string) error {
	data, err := c.readInput(path)
	if err != nil {
		return err
	}
	if path == "-" {
		path = "stdin"
	}
	found, checked, err := report.Audit(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, m := range found {
		fmt.Fprintf(c.out, "%s: %s\n", path, m)
	}
	if len(found) > 0 {
		return fmt.Errorf("%s: %d of %s differ from what the file's own times give", path, len(found), words.Count(checked, "figure", "figures"))
	}
	fmt.Fprintf(c.out, "%s: %s agree with the file's own times\n", path, words.Count(checked, "figure", "figures"))
	return nil
}
