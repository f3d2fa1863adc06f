package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"placer/baselines/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/fsx"
	"placer/plan"
	"placer/report"
	"placer/sim"
	"placer/sim/trace"
)

func (c *console) simulateCommand() *cobra.Command {
	var g graphFlags
	var m machineFlags
	var how judging
	var planFile, traceFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Predict a plan's step time and memory, and say what takes the time",
		Long: "simulate runs one step of any plan of a graph on a machine and prints its time,\n" +
			"each device's use and peak memory, proven lower bounds, and the critical path\n" +
			"with the reason of each wait.",
		Example: "  placer simulate --workload gnmt8 --gpus 8 --plan runs/gnmt8-p100-1/plan.json --trace step.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.check(); err != nil {
				return err
			}
			if err := m.check(cmd); err != nil {
				return err
			}
			if planFile == "" {
				return usagef("name a plan by --plan")
			}
			stdins := 0
			for _, f := range []string{g.file, m.file, planFile} {
				if f == "-" {
					stdins++
				}
			}
			if stdins > 1 {
				return usagef("only one input can come from stdin")
			}
			if err := how.check(); err != nil {
				return err
			}
			if err := writable(traceFile); err != nil {
				return err
			}
			return c.simulate(&g, &m, planFile, how, traceFile, asJSON)
		},
	}
	g.add(cmd)
	m.add(cmd)
	cmd.Flags().StringVar(&planFile, "plan", "", "plan file (JSON); - reads stdin")
	how.add(cmd)
	cmd.Flags().StringVar(&how.scheduler, "scheduler", "plan", "order in which a device runs its ready ops: plan (the plan's own), critical-path or fifo")
	cmd.Flags().StringVar(&how.fusion, "fusion", "plan", "which ops share kernels: plan (the plan's own), none or default (TensorFlow's rules)")
	cmd.Flags().StringVar(&traceFile, "trace", "", "write the step to this file: Chrome's JSON if its name ends in .json, else Perfetto's protobuf")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (c *console) simulate(from *graphFlags, on *machineFlags, planFile string, how judging, traceFile string, asJSON bool) error {
	l, m, err := c.load(from, on)
	if err != nil {
		return err
	}
	scheduler := how.scheduler
	g := l.Graph
	file, err := c.readPlan(planFile)
	if err != nil {
		return err
	}
	p, err := file.Plan(g, m)
	if err != nil {
		return fmt.Errorf("%s: %w", planFile, err)
	}
	if !file.SameMachine(m) {
		fmt.Fprintf(c.err, "placer: the plan was made for machine %s, whose figures differ from those of %s\n", file.MachineName, m.Name)
	}
	if scheduler == "plan" {
		how.scheduler = fifo
	}
	s, priority, err := simulator(l, m, how)
	if err != nil {
		return err
	}
	if scheduler != "plan" {
		p.Priority = priority
	}
	switch how.fusion {
	case "plan":
	case "none":
		p.Fusion = nil
	case "default":
		p.Fusion = fusion.Default(fuse.NewRules(g), p.Device)
	default:
		return usagef("unknown fusion %q, want plan, none or default", how.fusion)
	}
	r, err := s.Run(p, sim.Options{Trace: traceFile != ""})
	var infeasible *sim.Infeasible
	if err != nil && !errors.As(err, &infeasible) {
		return err
	}
	if traceFile != "" {
		if err := writeTrace(traceFile, r.Trace, g, m); err != nil {
			return err
		}
	}
	bound := s.LowerBound()
	if p.Fusion != nil {
		bound = s.FusedLowerBound()
	}
	doc := report.Simulate(g, m, p, r, bound, err)
	doc.Fusion = how.fusion
	doc.Scheduler = scheduler
	if how.objective.Normal() == plan.Throughput {
		source, err := loadSource(l, m, s)
		if err != nil {
			return err
		}
		if doc.MaxLoad, err = report.Loads(source, p.Device); err != nil {
			return err
		}
	}
	if err := c.print(asJSON, doc); err != nil {
		return err
	}
	if infeasible != nil {
		return infeasible
	}
	return nil
}

// writeTrace writes t in the form that the name of the file asks for.
func writeTrace(path string, t *sim.Trace, g *graph.Graph, m *hw.Machine) error {
	return fsx.WriteFile(path, func(w io.Writer) error {
		if strings.HasSuffix(path, ".json") {
			return trace.WriteChrome(w, t, g, m)
		}
		return trace.WritePerfetto(w, t, g, m)
	})
}
