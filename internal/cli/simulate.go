package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/bench"
	"placer/internal/fsx"
	"placer/internal/report"
	"placer/placer/problem"
	"placer/placer/verdict"
	"placer/plan"
	"placer/sim"
	"placer/sim/robust"
	"placer/sim/trace"
)

// planOwn stands for what the plan itself says.
const planOwn = "plan"

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	inputFlags
	how                                    problem.Options
	scheduler, plan, fusion, trace, robust string
	workers                                int
	json                                   bool
}

func (c *console) simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Predict a plan's step time and memory, with its critical path",
		Long: "simulate runs one step of any plan of a graph on a machine in the simulator. It prints\n" +
			"the step time, the use and peak memory of each device, proven lower bounds, and the\n" +
			"critical path with the reason of each wait.",
		Example: "  placer simulate --workload gnmt8 --gpus 8 --plan runs/gnmt8-p100-1/plan.json --trace step.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.simulate(cmd.Context(), &f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.plan, "plan", "", "plan `FILE`, or what 'export --to' writes for another program; - reads stdin")
	addJudging(cmd.Flags(), &f.how.Objective, &f.how.Contention)
	cmd.Flags().StringVar(&f.scheduler, "scheduler", planOwn, "order in which a device runs its ready ops: plan (the plan's own), critical-path or fifo")
	cmd.Flags().StringVar(&f.fusion, "fusion", planOwn, "which ops share kernels: plan (the plan's own), none or default (TensorFlow's rules)")
	cmd.Flags().StringVar(&f.robust, "robust", "", "also a quantile of the step over 1000 machines that deviate by the model's error, as p95")
	addFewWorkers(cmd.Flags(), &f.workers, "with --robust: machines simulated at once; changes the memory used, not the answer")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write the step to this file: Chrome's JSON if its name ends in .json, else Perfetto's protobuf")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// check completes how the plan is judged and reports the first fault.
func (f *simulateFlags) check(cmd *cobra.Command) error {
	if err := f.inputFlags.check(cmd, f.plan); err != nil {
		return err
	}
	if f.plan == "" {
		return usagef("name a plan by --plan")
	}
	if f.workers < 1 {
		return usagef("--workers %d: want at least 1", f.workers)
	}
	if !slices.Contains([]string{planOwn, "none", "default"}, f.fusion) {
		return usagef("unknown fusion %q, want plan, none or default", f.fusion)
	}
	f.how.Scheduler = problem.FIFO
	if f.scheduler != planOwn {
		f.how.Scheduler = problem.Scheduler(f.scheduler)
	}
	if err := bench.CheckOptions(&f.how); err != nil {
		return err
	}
	if f.robust != "" {
		c, err := robust.Parse(f.robust)
		if err != nil {
			return usage(err)
		}
		f.how.Robust = &c
	}
	return fileOnly("--trace", f.trace)
}

func (c *console) simulate(ctx context.Context, f *simulateFlags) error {
	l, m, err := c.load(&f.inputFlags)
	if err != nil {
		return err
	}
	p, err := c.planOf(f.plan, &l, m)
	if err != nil {
		return err
	}
	g := l.Graph
	s, priority, err := problem.Simulator(l.Source, m, f.how)
	if err != nil {
		return err
	}
	if f.scheduler != planOwn {
		p.Priority = priority
	}
	switch f.fusion {
	case "none":
		p.Fusion = nil
	case "default":
		p.Fusion = fusion.Default(fuse.NewRules(g), p.Device)
	}
	r, unfit := s.Run(p, sim.Options{Trace: f.trace != ""})
	var infeasible *sim.Infeasible
	if unfit != nil && !errors.As(unfit, &infeasible) {
		return unfit
	}
	if f.trace != "" {
		if err := writeTrace(f.trace, r.Trace, g, m); err != nil {
			return err
		}
	}
	var spread *report.Spread
	if f.how.Robust != nil {
		if spread, err = c.spreadOf(ctx, l, m, p, f); err != nil {
			return err
		}
	}
	bound := s.LowerBound(ctx)
	if p.Fusion != nil {
		bound = s.FusedLowerBound()
	}
	if ctx.Err() != nil { // of the bound there are parts alone
		return ctx.Err()
	}
	doc := report.Simulate(g, m, p, r, bound, unfit)
	doc.Fusion, doc.Spread = f.fusion, spread
	doc.Scheduler = f.scheduler
	over, err := judgeBy(ctx, doc, l.Source, m, p, f.how)
	if err != nil {
		return err
	}
	if err := c.print(f.json, doc); err != nil {
		return err
	}
	if infeasible != nil && f.how.Objective.Normal() != plan.Throughput { // which counts memory in its own way
		return infeasible
	}
	return over
}

// judgeBy adds to doc what p comes to by an objective other than the step, judged as a
// search judges it. It returns the error of a plan that does not fit by that.
func judgeBy(ctx context.Context, doc *report.Simulation, s problem.Source, m *hw.Machine, p *plan.Plan, how problem.Options) (over, err error) {
	if how.Objective.Normal() == plan.Step {
		return nil, nil
	}
	how.Robust = nil
	x, err := problem.New(s, m, how)
	if errors.Is(err, problem.ErrInfeasible) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	score := x.Evaluator.Evaluate(p.Decision)
	doc.Objective = &report.Objective{Name: how.Objective, Value: score.Value, LowerBound: x.Bound, Overflow: int64(score.Overflow)}
	if how.Objective == plan.Throughput {
		source, err := problem.Loads(s, m, x.Simulator)
		if err != nil {
			return nil, err
		}
		if doc.MaxLoad, err = report.Loads(ctx, source, p.Device); err != nil {
			return nil, err
		}
		doc.MaxLoad.LowerBound = max(doc.MaxLoad.LowerBound, x.Bound)
		doc.Objective.LowerBound = doc.MaxLoad.LowerBound
	}
	if !score.Feasible() {
		over = fmt.Errorf("%w: by the %s objective the plan takes %v more memory than the devices have", problem.ErrInfeasible, how.Objective, score.Overflow)
	}
	return over, nil
}

// spreadOf samples the step of p on machines that deviate by the model's error.
func (c *console) spreadOf(ctx context.Context, l loaded, m *hw.Machine, p *plan.Plan, f *simulateFlags) (*report.Spread, error) {
	cost, err := l.Costs(m)
	if err != nil {
		return nil, err
	}
	config := sim.Default()
	if config.Contention, err = l.Contention(f.how.Contention); err != nil {
		return nil, err
	}
	on := *f.how.Robust
	on.Error, on.Machines = verdict.ErrorOf(l.Source, m).Share, spreadMachines
	on.Seed = spreadSeed
	said := c.clock()
	tell := func(machines int) {
		if now := c.clock(); now-said >= spreadLines {
			said = now
			c.progressLine("simulated %d of %d machines", machines, on.Machines)
		}
	}
	steps, err := robust.Sample(ctx, robust.Model{Graph: l.Graph, Machine: m, Cost: cost, How: config}, on, p.Decision, f.workers, tell)
	if err != nil {
		return nil, err
	}
	return &report.Spread{Machines: on.Machines, Error: on.Error, Quantile: on.Quantile, Median: robust.Quantile(steps, 0.5), StepTime: robust.Quantile(steps, on.Quantile)}, nil
}

// A plan is judged on other machines than those that a search judged it on.
const (
	spreadMachines = 1000
	spreadSeed     = 1000
	spreadLines    = 5.0 // seconds between lines of progress
)

// writeTrace writes t in the form that the name of the file asks for.
func writeTrace(path string, t *sim.Trace, g *graph.Graph, m *hw.Machine) error {
	return fsx.WriteFile(path, func(w io.Writer) error {
		if strings.HasSuffix(path, ".json") {
			return trace.WriteChrome(w, t, g, m)
		}
		return trace.WritePerfetto(w, t, g, m)
	})
}
