package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"placer/baselines/cpsat"
	"placer/baselines/regal/columns"
	"placer/baselines/regal/cp"
	"placer/baselines/regal/exchange"
	"placer/baselines/regal/gas"
	"placer/baselines/regal/rivals"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/compare"
	"placer/graph"
	"placer/internal/fsx"
	"placer/nn"
	"placer/nn/safetensors"
	"placer/report"
	"placer/units"
)

// regalFlags are the flags of bench regal.
type regalFlags struct {
	task           string
	files          []string
	workloads      []string
	graphs, copies int
	devices        int
	memory         string
	gpu            string
	seed           uint64
	evaluations    int
	workers        int
	noCPSAT, long  bool
	cpsatWork      float64
	asJSON         bool
	csvFile, gas   string
	out            string
	regal          []string
	training       regalTraining
}

func (c *console) benchRegalCommand() *cobra.Command {
	var f regalFlags
	cmd := &cobra.Command{
		Use:   "regal",
		Short: "REGAL's table 1: every method at 5,000 evaluations on synthetic or imported graphs",
		Long: "Compares the methods of REGAL's table 1 under its synchronous performance model\n" +
			"(data tensors that cross devices block both, control dependencies only order).\n" +
			"--task synthetic draws graphs as the paper does, filter included; --task time and\n" +
			"--task memory take the graphs of --graph and --workload, with copies whose times\n" +
			"and sizes are each multiplied by U(0.5,1.5).",
		Args:    noArguments,
		Example: "  placer bench regal --graphs 100\n  placer bench regal --task memory --graph model.onnx --copies 9",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.benchRegal(cmd.Context(), &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.task, "task", "synthetic", "column of the table: synthetic, time or memory")
	fl.IntVar(&f.graphs, "graphs", 100, "synthetic graphs")
	fl.StringSliceVar(&f.files, "graph", nil, "graph files for time and memory (repeatable)")
	fl.StringSliceVar(&f.workloads, "workload", nil, "built-in workloads for time and memory (repeatable)")
	fl.IntVar(&f.copies, "copies", 99, "augmented copies of each of them")
	fl.IntVar(&f.devices, "devices", 2, "equal devices")
	fl.StringVar(&f.memory, "memory", "", "memory of each device, as 16GiB, or none; without it 16GiB for time, none for the others")
	fl.StringVar(&f.gpu, "gpu", "p100", "built-in machine whose first GPU gives the op times of graphs without their own")
	fl.Uint64Var(&f.seed, "seed", 1, "every random choice follows from it")
	fl.IntVar(&f.evaluations, "evaluations", 5000, "evaluations of every search")
	fl.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "graphs at once")
	fl.BoolVar(&f.long, "long", false, "add BRKGA with ten times the evaluations")
	fl.BoolVar(&f.noCPSAT, "no-cpsat", false, "leave CP-SAT out where it is installed")
	fl.Float64Var(&f.cpsatWork, "cpsat-work", 10, "CP-SAT's limit in its deterministic time, roughly seconds")
	fl.StringVar(&f.gas, "gas", "", "weights of GAS, which adds its row; experiments/regal/gas trains them")
	fl.StringSliceVar(&f.regal, "regal", nil, "weights of REGAL's policy, one row each, or none; without it those that come with the program, for the synthetic task")
	f.training.add(fl)
	fl.StringVar(&f.out, "out", "", "folder that keeps each graph's results as it ends, and the tables; the same command goes on where it was stopped")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON document")
	fl.StringVar(&f.csvFile, "csv", "", "write the rows as CSV to this file; - prints them instead of the table")
	return cmd
}

func (f *regalFlags) machine() (m sched.Machine, err error) {
	m.Devices = f.devices
	memory := f.memory
	if memory == "" && f.task == string(rivals.Time) {
		memory = "16GiB"
	}
	if memory != "" && memory != "none" {
		b, err := units.ParseBytes(memory)
		if err != nil {
			return m, usageError{err}
		}
		m.Memory = int64(b)
	}
	if f.devices < 1 || f.devices > sched.MaxDevices {
		return m, usagef("--devices %d: want 1 to %d", f.devices, sched.MaxDevices)
	}
	return m, nil
}

func (f *regalFlags) check() error {
	real := len(f.files)+len(f.workloads) > 0
	switch {
	case f.task != "synthetic" && f.task != "time" && f.task != "memory":
		return usagef("--task %s: want synthetic, time or memory", f.task)
	case f.task == "synthetic" && real:
		return usagef("--graph and --workload are for --task time and memory")
	case f.task != "synthetic" && !real:
		return usagef("--task %s needs graphs: --graph or --workload", f.task)
	case f.graphs < 1, f.evaluations < 1, f.workers < 1, f.copies < 0, !(f.cpsatWork > 0):
		return usagef("--graphs, --evaluations, --workers and --cpsat-work want at least 1, --copies 0")
	}
	return nil
}

func (c *console) benchRegal(ctx context.Context, f *regalFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	m, err := f.machine()
	if err != nil {
		return err
	}
	if f.training.folder != "" {
		return c.trainRegal(ctx, f, m)
	}
	doc := &report.Regal{Format: report.RegalFormat, Task: f.task, Devices: m.Devices, Memory: m.Memory, Evaluations: f.evaluations, Seed: f.seed, Notes: []string{}}
	config := rivals.Config{Evaluations: f.evaluations, Seed: f.seed, Workers: f.workers, Clock: threadSeconds}
	if f.task == "memory" {
		config.Objective = sched.PeakMemory
	}
	if config.Graphs, config.Graph, err = c.regalGraphs(ctx, f, m); err != nil {
		return err
	}
	if config.Methods, err = c.regalMethods(f, doc); err != nil {
		return err
	}
	journal, err := openRegal(f, doc, config.Methods)
	if err != nil {
		return err
	}
	defer journal.close()
	config.Known = journal.known
	done := len(journal.known)
	config.Done = func(k int, g rivals.Graph) error {
		if done++; !c.quiet {
			fmt.Fprintf(c.err, "%8.1f s  %d of %d: %s, %d ops\n", c.clock(), done, config.Graphs, g.Name, g.Ops)
		}
		return journal.add(k, g)
	}
	graphs, err := rivals.Compare(ctx, config)
	if errors.Is(err, context.Canceled) && f.out != "" {
		fmt.Fprintf(c.err, "placer: interrupted after %d of %d graphs; to go on: the same command with --out %s\n", done, config.Graphs, f.out)
		return fmt.Errorf("%w: %w", errQuiet, err)
	}
	if err != nil {
		return err
	}
	c.regalRows(doc, config.Methods, graphs)
	if err := journal.finish(doc, graphs); err != nil {
		return err
	}
	if f.csvFile == "-" {
		return doc.WriteCSV(c.out)
	}
	if f.csvFile != "" {
		if err := fsx.WriteFile(f.csvFile, doc.WriteCSV); err != nil {
			return err
		}
	}
	return c.print(f.asJSON, doc)
}

// regalMethods returns the methods that take part and notes those that do not.
func (c *console) regalMethods(f *regalFlags, doc *report.Regal) ([]rivals.Method, error) {
	doc.Notes = append(doc.Notes, "Model: transfers are synchronous; data tensors that cross devices block both, control dependencies only order.")
	o := rivals.Options{Solver: cp.Default(), BRKGA50K: f.long}
	o.Solver.Solver.Work = f.cpsatWork
	if !f.noCPSAT && f.task != "memory" {
		l, err := cpsat.Open("")
		switch {
		case errors.Is(err, cpsat.ErrUnavailable):
			doc.Notes = append(doc.Notes, "No CP-SAT row: "+err.Error()+".")
		case err != nil:
			return nil, err
		}
		o.CPSAT = l
	}
	if f.gas != "" {
		p, err := loadGAS(f.gas, f.devices)
		if err != nil {
			return nil, err
		}
		o.GAS = p
	}
	if err := c.regalProposers(f, doc, &o); err != nil {
		return nil, err
	}
	if proposers := o.REGAL != nil || o.GAS != nil || len(o.Others) > 0; proposers && f.evaluations <= columns.Evaluations {
		return nil, usagef("--evaluations %d: want more than %d, which a policy's features take; --regal none leaves the policies out", f.evaluations, columns.Evaluations)
	}
	return rivals.Methods(o), nil
}

// loadGAS returns the policy whose weights are in file.
func loadGAS(file string, devices int) (*gas.Policy, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	weights, err := safetensors.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	config := gas.Default()
	config.Devices = devices
	p, err := gas.New(config, backend, rand.New(rand.NewPCG(0, 0)))
	if err != nil {
		return nil, err
	}
	if err := nn.Restore(weights, p.Params(), nil); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// regalGraphs returns how many graphs there are and what gives number k: the
// file's or workload's own costs first, then its copies.
func (c *console) regalGraphs(ctx context.Context, f *regalFlags, m sched.Machine) (int, func(context.Context, int) (*sched.Problem, error), error) {
	if f.task == "synthetic" {
		config := synth.Default()
		config.Machine = m
		return f.graphs, func(ctx context.Context, k int) (*sched.Problem, error) {
			p, _, err := synth.Filtered(ctx, config, synth.DefaultFilter(), f.seed, uint64(k))
			return p, err
		}, nil
	}
	var all []*sched.Problem
	add := func(from *graphFlags) error {
		l, err := c.loadGraph(from)
		if err != nil {
			return err
		}
		p, err := c.regalProblem(l, f.gpu, m)
		if err == nil {
			all = append(all, p)
		}
		return err
	}
	for _, file := range f.files {
		if err := errors.Join(ctx.Err(), add(&graphFlags{file: file})); err != nil {
			return 0, nil, err
		}
	}
	for _, w := range f.workloads {
		if err := errors.Join(ctx.Err(), add(&graphFlags{workload: w})); err != nil {
			return 0, nil, err
		}
	}
	each := 1 + f.copies
	return len(all) * each, func(_ context.Context, k int) (*sched.Problem, error) {
		p, copy := all[k/each], k%each
		if copy == 0 {
			return p, nil
		}
		return synth.Augment(p, p.Name()+"#"+strconv.Itoa(copy), rand.New(rand.NewPCG(f.seed, uint64(k)))), nil
	}, nil
}

func (c *console) regalProblem(l loaded, gpu string, m sched.Machine) (*sched.Problem, error) {
	machine, err := c.loadMachine(&machineFlags{gpu: gpu})
	if err != nil {
		return nil, err
	}
	cost, err := l.costs(machine)
	if err != nil {
		return nil, err
	}
	seconds := make([]units.Seconds, l.NumOps())
	for i := range seconds {
		seconds[i] = cost.OpSeconds(graph.OpID(i), 0)
	}
	return exchange.FromGraph(l.Graph, seconds, m)
}

func (c *console) regalRows(doc *report.Regal, methods []rivals.Method, graphs []rivals.Graph) {
	base := 0
	var names []string
	for i, m := range methods {
		names = append(names, m.Name)
		if m.Name == rivals.Base {
			base = i
		}
	}
	doc.Graphs = len(graphs)
	for _, g := range graphs {
		doc.MeanOps += float64(g.Ops) / float64(len(graphs))
	}
	for _, x := range rivals.Table(names, graphs, base) {
		row := report.RegalRow{
			Method: x.Method, Improvement: x.Improvement, Gap: x.Gap, BoundGap: x.BoundGap, WorstBoundGap: x.WorstBoundGap, Optimal: x.AtBound,
			Wins: x.Wins, Ties: x.Ties, Losses: x.Losses, Graphs: x.Graphs, Infeasible: x.Infeasible, Evaluations: x.Evaluations, Seconds: x.Seconds, WorstSeconds: x.WorstSeconds,
		}
		if len(x.Improvements) > 0 {
			row.Median = compare.Median(x.Improvements)
		}
		if low, high, ok := compare.Interval(x.Improvements); ok {
			row.Low, row.High = &low, &high
		}
		if p, ok := rivals.PaperRow(rivals.Task(doc.Task), x.Method); ok {
			improvement, gap := p.Improvement/100, p.Gap/100
			row.PublishedImprovement, row.PublishedGap = &improvement, &gap
		}
		doc.Rows = append(doc.Rows, row)
	}
}
