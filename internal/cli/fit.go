package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/internal/bench"
	"placer/internal/report"
	"placer/placer/fit"
	"placer/placer/problem"
	"placer/sim"
)

// Whether fit may give up activations in a way.
const (
	auto  = "auto"
	never = "never"
)

// fitFlags are the flags of fit.
type fitFlags struct {
	inputFlags
	recompute, offload string
	scheduler, output  string
	evaluations        int
	json               bool
}

func (c *console) fitCommand() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit",
		Short: "Make a training step fit into memory, by recomputation and offload",
		Long: "fit makes a training step fit into memory: layers recompute their activations in the\n" +
			"backward pass, or keep them on the host. It prints what each way costs and how many\n" +
			"bytes are still missing, and writes a plan that simulate reads.",
		Example: "  placer fit --workload llama:layers=8,batch=4 --gpu a100 --gpus 1 --cpu -o plan.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.fit(cmd.Context(), &f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.recompute, "recompute", auto, "compute activations again before their gradients: auto (layers that have to) or never")
	cmd.Flags().StringVar(&f.offload, "offload", auto, "keep activations on the host: auto (layers that have to) or never; needs --cpu or a machine with one")
	cmd.Flags().StringVar(&f.scheduler, "scheduler", string(problem.CriticalPath), "order in which a device runs its ready ops: critical-path or fifo")
	cmd.Flags().IntVar(&f.evaluations, "evaluations", 300, "most changed graphs to simulate")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the best plan to this file; - writes it to stdout instead of the table")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (f *fitFlags) check(cmd *cobra.Command) error {
	if err := f.inputFlags.check(cmd); err != nil {
		return err
	}
	for name, s := range map[string]string{"recompute": f.recompute, "offload": f.offload} {
		if s != auto && s != never {
			return usagef("--%s %s: want %s or %s", name, s, auto, never)
		}
	}
	if f.evaluations < 1 {
		return usagef("--evaluations %d: want at least 1", f.evaluations)
	}
	if err := bench.CheckOptions(&problem.Options{Scheduler: problem.Scheduler(f.scheduler)}); err != nil {
		return err
	}
	return checkOutput(f.output, f.json)
}

func (c *console) fit(ctx context.Context, f *fitFlags) error {
	l, m, err := c.load(&f.inputFlags)
	if err != nil {
		return err
	}
	c.assumeState(l.Graph, &f.graphFlags)
	how := problem.Options{Scheduler: problem.Scheduler(f.scheduler)}
	r, err := fit.Fit(ctx, l.Source, m, how, fit.Allowed{Recompute: f.recompute == auto, Offload: f.offload == auto}, f.evaluations)
	if err != nil {
		return err
	}
	result, infeasible := r.Problem.Simulator.Run(r.Plan, sim.Options{})
	if result == nil {
		return infeasible
	}
	doc := &report.Fitted{
		Format: report.FittedFormat, Graph: report.IdentifyGraph(l.Graph), Machine: report.IdentifyMachine(m), Layers: r.Layers,
		Best: fittedRow(r.Best), LowerBound: r.Problem.Bound, Evaluations: r.Evaluations, Notes: r.Notes,
	}
	for _, x := range r.Tried {
		doc.Tried = append(doc.Tried, fittedRow(x))
	}
	for _, b := range result.PeakBytes {
		doc.Peak = append(doc.Peak, int64(b))
	}
	var names []string
	for i := range m.Devices {
		names = append(names, m.Devices[i].Name)
	}
	doc.Devices(names)
	file, err := r.Plan.ChangedFile(l.Graph, r.Best.Changes, r.Derived.Graph, m)
	if err != nil {
		return err
	}
	if err := c.emit(f.output, file.Write, f.json, doc); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted: this is the best of the ways that were tried until then")
	}
	if infeasible != nil {
		return fmt.Errorf("graph %s: %w", l.Name(), infeasible)
	}
	return nil
}

// assumeState says what the answer rests on of the optimizer's state in g, which f names.
func (c *console) assumeState(g *graph.Graph, f *graphFlags) {
	if s := fit.OptimizerState(g, f.masterWeights()); s != "" {
		c.assumed("%s", s)
	}
}

func fittedRow(x *fit.Candidate) report.FittedRow {
	r := report.FittedRow{Method: x.Method, Way: x.Way, Recompute: x.Recompute, Offload: x.Offload, StepTime: x.Score.Value, Feasible: x.Score.Feasible()}
	for _, b := range x.Missing {
		r.Missing = append(r.Missing, int64(b))
	}
	return r
}
