package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/graph/unit"
	"placer/internal/fsx"
	"placer/placer"
	"placer/plan"
	"placer/sim"
)

// searchFlags are the flags of the search command.
type searchFlags struct {
	graph       graphFlags
	machine     machineFlags
	hub         hubFlags
	evaluator   evaluatorFlags
	budget      time.Duration
	evaluations int
	seed        uint64
	granularity string
	judging     judging
	methods     []string
	fromScratch bool
	workers     int
	out, resume string
	plan        string
	json        bool
	tasks       string
	device      policyDevice
}

func (c *console) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search",
		Short: "Find a placement of a graph on a machine",
		Long: "search runs every method within one budget, prints what each came to, and keeps\n" +
			"the best plan, results, progress and traces in a folder. The plan is never worse\n" +
			"than that of the best rule of thumb.\n\n" +
			"With --evaluations instead of --budget, one seed gives one plan, byte for byte.",
		Example: "  placer search --workload gnmt8 --gpus 8\n" +
			"  placer search --graph model.onnx --train adam --gpus 2 --budget 30s\n" +
			"  placer search --workload rnnlm4 --gpus 4 --evaluations 5000 --seed 7 --json\n" +
			"  placer search --resume runs/gnmt8-p100-1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if err := f.hub.check(); err != nil {
				return err
			}
			if err := writable(f.plan); err != nil {
				return err
			}
			device, err := c.openPolicyDevice(&f.device, f.evaluator.libraries)
			if err != nil {
				return err
			}
			s, err := c.prepare(cmd, &f)
			if err != nil {
				return err
			}
			defer s.close()
			if device != nil {
				defer device.Close()
				s.methods = on(device, s.methods)
			}
			return c.search(cmd.Context(), s, &f)
		},
	}
	f.graph.add(cmd)
	f.machine.add(cmd)
	f.hub.add(cmd)
	f.evaluator.add(cmd)
	f.device.add(cmd)
	d := placer.DefaultSearch()
	cmd.Flags().DurationVar(&f.budget, "budget", time.Duration(d.Budget.Seconds)*time.Second, "time to search, all methods together")
	cmd.Flags().IntVar(&f.evaluations, "evaluations", 0, "evaluations to search, all searches and the policy together; without --budget nothing else ends the search")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	cmd.Flags().StringVar(&f.granularity, "granularity", "chain", "what the policy and the samplers decide on: op, cell, segment or chain")
	f.judging.add(cmd)
	cmd.Flags().StringVar(&f.judging.scheduler, "scheduler", criticalPath, "order in which a device runs its ready ops, for every method: critical-path or fifo")
	cmd.Flags().StringVar(&f.tasks, "tasks", "", "what to decide on, some of place,schedule,fuse; place is always among them (default all; place alone for other objectives and transfers without contention)")
	cmd.Flags().StringSliceVar(&f.methods, "methods", nil, "methods to run, separated by commas; all without it")
	cmd.Flags().BoolVar(&f.fromScratch, "from-scratch", false, "leave out what starts from the pretrained policy: zero-shot and fine-tuned")
	cmd.Flags().IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "methods that run at once")
	cmd.Flags().StringVar(&f.out, "out", "", "folder of the run (default runs/GRAPH-MACHINE-SEED, numbered if taken)")
	cmd.Flags().StringVar(&f.resume, "resume", "", "continue the run in this folder")
	cmd.Flags().StringVarP(&f.plan, "output", "o", "", "write the best plan to this file too; - writes it to stdout instead of the table")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// forResume are the flags that --resume leaves free; the run's own
// configuration holds the others.
var forResume = map[string]bool{"resume": true, "json": true, "quiet": true, "verbose": true, "output": true, "workers": true, "hub": true, "hub-keys": true, "await": true, "libcuda": true, "cublas": true}

func (f *searchFlags) check(cmd *cobra.Command) error {
	if f.resume != "" {
		var wrong []string
		for _, name := range []string{"workload", "graph", "train", "machine", "gpu", "gpus", "cpu", "budget", "evaluations", "seed", "granularity", "scheduler", "tasks", "objective", "contention", "times", "methods", "from-scratch", "out", "evaluator", "measure-best", "measurements", "measure-mode", "measure-repeats", "logical", "partition"} {
			if cmd.Flags().Changed(name) && !forResume[name] {
				wrong = append(wrong, "--"+name)
			}
		}
		if len(wrong) > 0 {
			return usagef("--resume takes %s from the run's own configuration", strings.Join(wrong, ", "))
		}
	} else if err := f.graph.check(); err != nil {
		return err
	} else if err := f.machine.check(cmd); err != nil {
		return err
	}
	switch {
	case f.graph.file == "-" && f.machine.file == "-":
		return usagef("graph and machine cannot both come from stdin")
	case f.budget <= 0:
		return usagef("--budget %v: want more than 0", f.budget)
	case f.evaluations < 0 || cmd.Flags().Changed("evaluations") && f.evaluations == 0:
		return usagef("--evaluations %d: want at least 1", f.evaluations)
	case f.workers < 1:
		return usagef("--workers %d: want at least 1", f.workers)
	case cmd.Flags().Changed("methods") && len(f.methods) == 0:
		return usagef("--methods names none")
	case f.json && f.plan == "-":
		return usagef("--json and -o - both want stdout")
	}
	if err := f.judging.check(); err != nil {
		return err
	}
	if err := f.device.check(); err != nil {
		return err
	}
	tasks, err := f.defaultTasks(), error(nil)
	if cmd.Flags().Changed("tasks") {
		tasks, err = plan.ParseTasks(f.tasks)
	}
	switch {
	case err != nil:
		return usageError{err}
	case !tasks.Has(plan.Place):
		return usagef("--tasks %s: a search decides on place too", f.tasks)
	case tasks != plan.Place && f.judging.objective.Normal() != plan.Step:
		return usagef("--tasks %s: by the %s objective there is place alone to decide on", f.tasks, f.judging.objective)
	}
	f.judging.tasks = tasks
	if _, err := unit.ParseLevel(f.granularity); err != nil {
		return usageError{err}
	}
	return f.evaluator.check(cmd, f.judging)
}

// defaultTasks are all tasks, or placement alone where there is nothing else to
// decide or no way to judge it.
func (f *searchFlags) defaultTasks() plan.Tasks {
	free := f.judging.contention != ""
	if free {
		c, err := sim.ParseContention(f.judging.contention)
		free = err == nil && c == sim.Uncontended
	}
	if f.judging.objective.Normal() != plan.Step || free {
		return plan.Place
	}
	return plan.AllTasks
}

// budgetOf returns the budget that the flags ask for: seconds by default, and
// not beside evaluations unless both are named.
func (f *searchFlags) budgetOf(cmd *cobra.Command) plan.Budget {
	b := plan.Budget{Evaluations: f.evaluations, Seconds: f.budget.Seconds()}
	if f.evaluations > 0 && !cmd.Flags().Changed("budget") {
		b.Seconds = 0
	}
	return b
}

// search runs what has been prepared, writes the run and prints the result.
func (c *console) search(ctx context.Context, s *session, f *searchFlags) error {
	if s.done != nil { // the run to resume had ended
		fmt.Fprintf(c.err, "placer: the run in %s is complete\n", s.run.Dir())
		return c.print(f.json, s.done)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	workers, err := c.openHub(ctx, &f.hub, s)
	if err != nil {
		return err
	}
	defer workers.close()
	meter, err := c.openMeasuring(ctx, s, workers, stop)
	if err != nil {
		return err
	}
	show := c.newProgress(s.config.Budget.plan())
	show.objective = s.task.Objective
	show.line("%7.1f s  %s: %d ops, %d units; %s, %d devices; run folder %s", c.clock(), s.task.Graph.Name(), s.task.Graph.NumOps(),
		s.task.Units.Levels[s.level].NumUnits(), s.task.Machine.Name, s.task.Machine.NumDevices(), s.run.Dir())
	host := placer.Host{Clock: func() float64 { return s.before + c.clock() }, CPU: c.cpu}
	found, err := placer.Search(ctx, s.task, s.methods, s.searchConfig(f.workers), host, func(e placer.Event) error {
		show.observe(e)
		workers.tell(show, e.Seconds)
		return s.run.Observe(e)
	}, s.memory)
	show.close()
	workers.sum(c)
	meter.sum(c)
	var why stopped
	if errors.As(context.Cause(ctx), &why) && err != nil {
		return why
	}
	if errors.Is(err, context.Canceled) && errors.Is(err, placer.ErrNoPlacement) {
		return interrupted{"interrupted before the first placement; to go on: placer search --resume " + s.run.Dir()}
	}
	if err != nil {
		return err
	}
	doc, infeasible, err := c.write(s, found, meter)
	if err != nil {
		return err
	}
	if f.plan != "" {
		file, err := bestPlan(s, found).File(s.task.Graph, s.task.Machine)
		if err != nil {
			return err
		}
		if f.plan == "-" {
			err = file.Write(c.out)
		} else {
			err = fsx.WriteFile(f.plan, file.Write)
		}
		if err != nil {
			return err
		}
	}
	if f.plan != "-" {
		if err := c.print(f.json, doc); err != nil {
			return err
		}
	}
	if !c.quiet {
		fmt.Fprintf(c.err, "placer: run folder %s\n", s.run.Dir())
	}
	if why.error != nil {
		return fmt.Errorf("%w; to go on: placer search --resume %s", why, s.run.Dir())
	}
	if found.Interrupted {
		fmt.Fprintf(c.err, "placer: interrupted; to go on: placer search --resume %s\n", s.run.Dir())
		return fmt.Errorf("%w: %w", errQuiet, context.Canceled)
	}
	return infeasible
}

// newRunFolder makes the folder of a new run: dir, or the first free one of its
// default names.
func newRunFolder(dir, name string) (*placer.Run, error) {
	if dir != "" {
		return placer.CreateRun(dir)
	}
	dir, err := freeFolder(name)
	if err != nil {
		return nil, err
	}
	return placer.CreateRun(dir)
}

// freeFolder makes the folder runs/name, numbered if that is taken.
func freeFolder(name string) (string, error) {
	for k := 1; ; k++ {
		dir := filepath.Join("runs", name)
		if k > 1 {
			dir = fmt.Sprintf("%s-%d", dir, k)
		}
		if err := os.MkdirAll("runs", 0o755); err != nil {
			return "", err
		}
		if err := os.Mkdir(dir, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}
