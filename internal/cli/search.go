package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"placer/internal/jsonx"
	"placer/internal/words"
	"placer/measure/session"
	"placer/nn"
	"placer/placer/search"
	"placer/plan"
	"placer/plan/formats"
	"placer/units"
)

// searchFlags are the flags of the search command.
type searchFlags struct {
	settings
	budget      time.Duration
	runtime     string
	config      string // file
	printConfig bool
	out, resume string
	plan        string
	target      string // program that is to take the plan
	strategies  bool
	json        bool
}

func (c *console) searchCommand() *cobra.Command {
	f := searchFlags{settings: defaultSettings()}
	cmd := &cobra.Command{
		Use:   "search",
		Short: "Find a placement of a graph on a machine",
		Long:  "search runs rules of thumb, searches and policies within one budget and keeps the best plan.",
		Example: "  placer search --graph model.onnx --train adam --gpus 2 --budget 30s -o plan.json\n" +
			"  placer search --graph config.json --gpu a100 --gpus 4 --for vllm -o vllm.txt",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runSearch(cmd, &f) },
	}
	helpBySection(cmd, f.add(cmd))
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && movedFlags[unknown.GetSpecifiedName()] != "" {
			return usagef("--%s is now the key %s of the file that --config names", unknown.GetSpecifiedName(), movedFlags[unknown.GetSpecifiedName()])
		}
		return flagError(cmd, err)
	})
	return cmd
}

// add adds the flags of search to cmd, and returns the sections in which its help has them.
func (f *searchFlags) add(cmd *cobra.Command) (sections []section) {
	addSection(cmd, &sections, "Input", func(fl *pflag.FlagSet) {
		f.graphFlags.add(fl)
		fl.Lookup("train").Usage = "training step: `OPTIMIZER` sgd, momentum, adam; --master-weights in f32"
		_ = fl.MarkHidden("master-weights") // named beside --train; the help fits a screen
		f.machineFlags.add(fl)
		fl.Lookup("gpus").Usage = "the first `N` GPUs (default all); --cuda-graph replays the step"
		_ = fl.MarkHidden("cuda-graph") // named beside --gpus
	})
	addSection(cmd, &sections, "Budget", func(fl *pflag.FlagSet) {
		fl.DurationVar(&f.budget, "budget", time.Duration(search.Default().Budget.Seconds)*time.Second, "`TIME` to search, all methods together, as 30s")
		fl.IntVar(&f.Budget.Evaluations, "evaluations", 0, "evaluations of all searches together; without --budget the only limit")
		fl.Uint64Var(&f.Seed, "seed", f.Seed, "seed of every random choice")
	})
	addSection(cmd, &sections, "What is decided", func(fl *pflag.FlagSet) {
		addJudging(fl, &f.Objective, &f.Contention)
		fl.StringVar(&f.Robust, "robust", "", "judge by a `QUANTILE` over machines that deviate, as p95")
		fl.StringVar(&f.Tasks, "tasks", "", "`SOME` of place,schedule,fuse; place always (default all that apply)")
		fl.StringVar((*string)(&f.Scheduler), "scheduler", string(f.Scheduler), "ready op to run first: critical-path or fifo")
		fl.StringVar(&f.Granularity, "granularity", f.Granularity, "units of decision: op, cell, segment or chain")
		fl.StringSliceVar(&f.Methods, "methods", nil, "`LIST` of methods (default rules, portfolio; --from-scratch none learned)")
		fl.StringSliceVar(&f.From, "from", nil, "plan `FILES` to start from: the search ends behind none of them")
		fl.StringVar(&f.target, "for", "", "the best plan that `PROGRAM` takes: vllm, llama.cpp, ... (docs/doors.md)")
		fl.BoolVar(&f.FromScratch, "from-scratch", f.FromScratch, "leave out what is pretrained")
		_ = fl.MarkHidden("from-scratch") // named beside --methods; the help fits a screen
		fl.BoolVar(&f.strategies, "strategies", false, "rows of data, pipeline, tensor parallel (default with 30 s or more)")
	})
	addSection(cmd, &sections, "Output", func(fl *pflag.FlagSet) {
		fl.StringVar(&f.out, "out", "", "`FOLDER` of the run (default runs/GRAPH-MACHINE-SEED, numbered if taken)")
		fl.StringVar(&f.resume, "resume", "", "continue the run in this `FOLDER`")
		fl.StringVarP(&f.plan, "output", "o", "", "write the best plan to `FILE` too, with --for in its form; - is stdout")
		fl.BoolVar(&f.json, "json", false, "print one JSON document")
	})
	addSection(cmd, &sections, "Measuring and workers", func(fl *pflag.FlagSet) {
		fl.StringVar(&f.Evaluator, "evaluator", f.Evaluator, "policies learn from roofline, hardware or both")
		fl.StringVar(&f.runtime, "runtime", onKernels, "measured steps: kernels, or torch of --python")
		fl.StringVar(&f.Python, "python", f.Python, "program with torch and placer_torch, for --runtime torch")
		_ = fl.MarkHidden("python") // named beside --runtime; the help fits a screen
		addWorkers(fl, &f.Workers, "methods that run at once")
		addPolicyDevice(fl, &f.PolicyDevice)
		fl.StringVar(&f.config, "config", "", "settings `FILE`: these flags, measuring, other hosts (docs/cli.md)")
		fl.BoolVar(&f.printConfig, "print-config", false, "print the settings as such a file and search nothing")
	})
	beside(cmd.Flags(), "resume", "for", "output", "json", "workers", "python", "policy-device", "config")
	return sections
}

// runSearch searches as the flags and the settings that they name say.
func (c *console) runSearch(cmd *cobra.Command, f *searchFlags) error {
	if err := c.configure(cmd, f); err != nil {
		return err
	}
	if err := f.check(cmd); err != nil {
		return err
	}
	var network nn.Device
	if !f.printConfig {
		device, closed, err := c.openPolicyDevice(f.PolicyDevice, f.Libraries)
		if err != nil {
			return err
		}
		defer closed()
		network = device
	}
	s, err := c.prepare(cmd.Context(), f, network)
	if err != nil {
		return err
	}
	defer s.close()
	if f.printConfig {
		return jsonx.Write(c.out, settings{runFormat, s.config.asked(), f.hostSettings})
	}
	return c.search(cmd.Context(), s, f)
}

// configure reads the file of --config, and the command line once more over it.
func (c *console) configure(cmd *cobra.Command, f *searchFlags) error {
	if f.config == "" {
		return nil
	}
	if err := oneStdin(append(slices.Clone(f.From), f.config, f.Graph, f.Machine)...); err != nil {
		return err
	}
	path, workers := f.config, f.Workers
	if f.resume != "" { // the run has its own of the others
		host := struct {
			Format string `json:"format"`
			hostSettings
		}{"", hostSettings{Workers: workers, PolicyDevice: onCPU, Python: f.Python}}
		if err := c.readSettings(path, &host); err != nil {
			return err
		}
		f.Format, f.hostSettings = host.Format, host.hostSettings
	} else {
		given := f.inputFlags()
		f.settings = defaultSettings()
		f.Format = "" // which a document says
		f.Workers = workers
		if err := c.readSettings(path, &f.settings); err != nil {
			return err
		}
		if f.GraphHash != "" && f.Tasks == "" {
			f.Tasks = plan.Place.String() // so run folders had it
		}
		if given.Workload+given.Graph != "" {
			f.graphFlags, f.GraphHash = graphFlags{}, ""
		}
		if given.named() {
			f.machineFlags, f.MachineHash, f.MachineAssumed = machineFlags{}, "", false
		}
	}
	if err := checkFormat(path, f.Format); err != nil {
		return err
	}
	cmd.Flags().Visit(func(x *pflag.Flag) {
		if list, ok := x.Value.(pflag.SliceValue); ok {
			_ = list.Replace(nil) // the second time adds to it
		}
	})
	if f.Dims == nil {
		f.Dims = map[string]int64{} // to which the second time adds too
	}
	return cmd.Flags().Parse(c.args)
}

// inputFlags are those that name graph and machine.
func (f *searchFlags) inputFlags() *inputFlags {
	return &inputFlags{f.graphFlags, f.machineFlags}
}

// check completes the settings and reports the first fault.
func (f *searchFlags) check(cmd *cobra.Command) error {
	if f.resume != "" {
		if err := notBesideResume(cmd, "the run's own configuration"); err != nil {
			return err
		}
	} else if err := f.inputFlags().check(cmd, append(slices.Clone(f.From), f.config)...); err != nil {
		return err
	}
	if f.target != "" {
		if _, err := formats.Find(f.target); err != nil {
			return usagef("--for %s: %w", f.target, err)
		}
	}
	if f.printConfig {
		if err := useless(cmd, "--print-config", "out", "output", "json", "for"); err != nil {
			return err
		}
	}
	changed := cmd.Flags().Changed
	if changed("budget") {
		f.Budget.Seconds = f.budget.Seconds()
	}
	if changed("strategies") {
		f.Strategies = &f.strategies
	}
	switch {
	case changed("budget") && f.budget <= 0:
		return usagef("--budget %v: want more than 0", f.budget)
	case changed("evaluations") && f.Budget.Evaluations < 1:
		return usagef("--evaluations %d: want at least 1", f.Budget.Evaluations)
	case changed("methods") && len(f.Methods) == 0:
		return usagef("--methods names none")
	}
	if err := errors.Join(f.hostSettings.check(), f.setRuntime(cmd)); err != nil {
		return err
	}
	if err := f.complete(); err != nil {
		return err
	}
	return checkOutput(f.plan, f.json)
}

// setRuntime notes what --runtime says.
func (f *searchFlags) setRuntime(cmd *cobra.Command) error {
	measuring := f.Measuring
	switch given := cmd.Flags().Changed("runtime"); {
	case given && f.runtime != onKernels && f.runtime != session.Torch:
		return usagef("--runtime %s: want %s or %s", f.runtime, onKernels, session.Torch)
	case given && f.Evaluator == byRoofline:
		return usagef("--runtime %s goes with --evaluator %s or %s", f.runtime, byHardware, byBoth)
	case given && f.runtime == session.Torch:
		measuring.Runtime = session.Torch
	case given:
		measuring.Runtime = ""
	}
	if cmd.Flags().Changed("python") && f.resume == "" && measuring.Runtime != session.Torch {
		return usagef("--python goes with --runtime torch")
	}
	return nil
}

// search runs what has been prepared, writes the run and prints the result. Where it cannot
// begin, it leaves no folder of a new run: the same command has it again.
func (c *console) search(ctx context.Context, s *searchRun, f *searchFlags) error {
	if s.done != nil { // the run to resume had ended
		return c.ended(s, f)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	workers, err := c.openHub(ctx, &f.Hub, s)
	defer workers.close()
	var measured *measuring
	if err == nil {
		measured, err = c.openMeasuring(ctx, s, workers, stop)
	}
	if err != nil {
		return errors.Join(err, s.discard())
	}
	if !c.quiet {
		fmt.Fprintf(c.err, "%7.1f s  %s: %s, %s; %s, %s; run folder %s\n", c.clock(), s.task.Graph.Name(), words.Count(s.task.Graph.NumOps(), "op", "ops"),
			words.Count(s.task.Units.Levels[s.level].NumUnits(), "unit", "units"), s.task.Machine.Name, words.Count(s.task.Machine.NumDevices(), "device", "devices"), s.run.Dir())
	}
	s.divided, s.batch = c.beside(ctx, s)
	host := s.host
	host.Clock, host.CPU = func() float64 { return s.before + c.clock() }, c.cpu
	how := search.Default()
	how.Budget, how.Seed, how.Workers = s.config.Budget.plan(), s.config.Seed, f.Workers
	how.Fewer = how.Budget.Seconds == 0
	how, robust, err := c.searchNominal(ctx, s, how, host)
	if err != nil {
		return err
	}
	show := c.newProgress(how.Budget)
	show.objective = s.task.Objective
	s.run.Warn = func(err error) { show.line("placer: %v", err) }
	host.Memory, host.Observe = s.memory, func(e search.Event) error {
		show.observe(e)
		workers.tell(show, e.Seconds)
		robust.remember(e)
		return s.run.Observe(e)
	}
	var found *search.Result
	if robust != nil && robust.first > 0 && ctx.Err() != nil {
		found, err = c.judgeStopped(ctx, s, how, host)
	} else {
		found, err = search.Search(ctx, s.task, s.methods, how, host)
	}
	show.close()
	if err == nil && robust != nil {
		found.Evaluations += robust.first
		err = c.chooseFinal(ctx, s, robust, found, f.Workers)
	}
	workers.sum(c)
	measured.sum(c)
	s.run.Warn = func(err error) { c.say("%v", err) }
	var why stopped
	if errors.As(context.Cause(ctx), &why) && err != nil {
		return why
	}
	if errors.Is(err, context.Canceled) && errors.Is(err, search.ErrNoPlacement) {
		return interrupted("interrupted before the first placement; to continue: placer search --resume " + s.run.Dir())
	}
	if err != nil {
		return err
	}
	return c.conclude(ctx, s, f, found, measured, why)
}

// conclude writes what was found into the run folder and prints it. why is what stopped the
// search, if anything did.
func (c *console) conclude(ctx context.Context, s *searchRun, f *searchFlags, found *search.Result, measured *measuring, why stopped) error {
	s.tighten(ctx, f.Workers)
	var restricted *plan.Outcome
	var failed error
	if s.restricted != nil {
		restricted, failed = s.restricted.search(ctx, s, found)
	}
	doc, infeasible, unwritten := c.write(s, found, measured)
	if failed != nil {
		return errors.Join(failed, unwritten)
	}
	best := bestPlan(s, found)
	file, err := best.File(s.task.Graph, s.task.Machine)
	if err != nil {
		return err
	}
	write := file.Write
	if s.restricted != nil {
		if write, err = s.restricted.write(c, s, best, restricted, doc); err != nil {
			return err
		}
		if r := doc.Restricted; !r.Feasible { // it is what was asked for
			infeasible = fmt.Errorf("--for %s: %w", r.Program, tooMuch(plan.Score{Value: r.Value, Overflow: units.Bytes(r.Missing)}))
		}
		if unwritten == nil {
			unwritten = s.run.WriteJSON(search.ResultFile, doc)
		}
	}
	if err := errors.Join(c.emit(f.plan, write, f.json, doc), unwritten); err != nil {
		return err
	}
	page, err := c.writeReport(s)
	s.run.SaveLearner()
	c.say("run folder %s", s.run.Dir())
	if err != nil { // the plan and its table are there
		c.say("no report: %v", err)
	} else {
		c.say("report %s", page)
	}
	if infeasible == nil && s.restricted == nil && s.config.Graph != "-" {
		c.sayHowToRun(s)
	}
	if why.error != nil {
		return fmt.Errorf("%w; to continue: placer search --resume %s", why, s.run.Dir())
	}
	if found.Interrupted {
		return interrupted("interrupted; to continue: placer search --resume " + s.run.Dir())
	}
	return infeasible
}

// tighten raises the proven bound, by so many workers: under a budget in seconds for boundShare
// of it at most.
func (s *searchRun) tighten(ctx context.Context, workers int) {
	if b := s.config.Budget.Seconds; b > 0 {
		limit, stop := context.WithTimeout(ctx, time.Duration(boundShare*b*float64(time.Second)))
		defer stop()
		ctx = limit
	}
	s.task.Tighten(ctx, workers)
}

// ended prints the result of a run that had ended before it was resumed.
func (c *console) ended(s *searchRun, f *searchFlags) error {
	path := s.run.Path(search.PlanFile)
	if f.target != "" {
		return usagef("--for %s: the run in %s is complete; 'placer export --plan %s --to %s' brings its plan into that form", f.target, s.run.Dir(), path, f.target)
	}
	c.say("the run in %s is complete", s.run.Dir())
	file, err := plan.ReadFile(path)
	if err != nil {
		return err
	}
	if err := c.emit(f.plan, file.Write, f.json, s.done); err != nil {
		return err
	}
	if best := &s.done.Best; !best.Feasible {
		return tooMuch(plan.Score{Overflow: units.Bytes(best.Overflow)})
	}
	return nil
}

// sayHowToRun names the command that writes the best plan in the form of the program that
// the graph came from, or as the schedule that a runtime needs.
func (c *console) sayHowToRun(s *searchRun) {
	form, page := "schedule -o schedule.json", "pytorch"
	switch file := s.loaded.file; {
	case s.config.Train != "": // a step that no program's file has
	case file.ONNX != nil:
		form, page = "onnx -o stages.json", "onnxruntime"
		if o := s.task.Objective.Normal(); o != plan.Step {
			form = fmt.Sprintf("onnx --objective %s -o stages.json", o)
		}
	case file.Form.Name == "GraphDef":
		form, page = "graphdef -o placed.pb", "tensorflow"
	}
	c.say("to run the plan (docs/%s.md):\n  placer export %s \\\n     --machine %s \\\n     --plan %s \\\n     --to %s", page, s.config.graphFlags.line(), s.run.Path(search.MachineFile), s.run.Path(search.PlanFile), form)
}

// newRunFolder makes a new run in the folder dir, or in the first free one of its default
// names. made reports whether the folder was not there before.
func newRunFolder(dir, name string) (run *search.Run, made bool, err error) {
	if dir == "" {
		dir, err = freeFolder(name)
		made = true
	} else if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
		made = true
	}
	if err != nil {
		return nil, false, err
	}
	run, err = search.CreateRun(dir)
	return run, made, err
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
