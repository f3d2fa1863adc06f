package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"placer/graph/formats/dnnpart"
	"placer/graph/formats/foreign"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/sim/schedule"
	"placer/sim/throughput"
)

// exportFlags are the flags of the export command.
type exportFlags struct {
	inputFlags
	plan, split string
	contention  string
	as, out     string
}

func (c *console) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a placement in another program's form, or another program's as a plan",
		Long: "export turns a plan into the form of the program whose file the graph came from: a\n" +
			"split of a dnn-partitioning instance, or a PipeDream profile with the stage of every\n" +
			"layer. With --split, or for a profile that names stages, it writes that placement\n" +
			"as a plan instead. --as schedule writes what a runtime needs of any plan: the ops by\n" +
			"name, with their devices, in the order of their simulated start.",
		Example: "  placer export --graph model.json --machine here.json --plan runs/gpt/plan.json --as schedule -o schedule.json\n" +
			"  placer export --graph bert24_training.json --plan runs/bert/plan.json --as split -o split.json\n" +
			"  placer export --graph bert24_training.json --split expert.json -o plan.json\n" +
			"  placer export --graph vgg16.graph.txt --gpus 4 --plan plan.json --as pipedream -o vgg16_partitioned.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.contention != "" && f.as != "schedule" {
				return usagef("--contention goes with --as schedule")
			}
			if _, err := sim.ParseContention(f.contention); f.contention != "" && err != nil {
				return usage(err)
			}
			if f.plan != "" && f.split != "" {
				return usagef("--plan and --split exclude each other")
			}
			write, err := c.export(&f)
			if err != nil {
				return err
			}
			return c.writeOutput(f.out, write)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.plan, "plan", "", "plan file (JSON) to write")
	cmd.Flags().StringVar(&f.split, "split", "", "split of a dnn-partitioning instance to write as a plan")
	cmd.Flags().StringVar(&f.as, "as", "plan", "form: plan, schedule (names, devices and a static order, for runtimes), split (dnn-partitioning) or pipedream (a profile with stages)")
	addContention(cmd.Flags(), &f.contention)
	cmd.Flags().StringVarP(&f.out, "output", "o", "-", "file to write; - is stdout")
	return cmd
}

// export returns what writes the placement.
func (c *console) export(f *exportFlags) (func(io.Writer) error, error) {
	l, m, err := c.load(&f.inputFlags)
	if err != nil {
		return nil, err
	}
	var p *plan.Plan
	var changed *plan.File
	switch {
	case f.plan != "":
		file, err := plan.ReadFile(f.plan)
		if err != nil {
			return nil, err
		}
		if err := l.change(file); err != nil {
			return nil, fmt.Errorf("%s: %w", f.plan, err)
		}
		changed = file
		if p, err = file.Plan(l.Graph, m); err != nil {
			return nil, fmt.Errorf("%s: %w", f.plan, err)
		}
	case f.split != "":
		if l.file.Partitioning == nil {
			return nil, usagef("--split goes with a dnn-partitioning instance as --graph")
		}
		data, err := foreign.ReadFile(f.split)
		if err != nil {
			return nil, err
		}
		s, err := l.file.Partitioning.ReadSplit(data, f.split)
		if err != nil {
			return nil, err
		}
		p = &plan.Plan{Graph: l.Hash(), Machine: m.Name, Method: "split", Decision: plan.Decision{Device: s.Device}}
	case l.file.Profile != nil:
		stage, n := l.file.Profile.Stages()
		if n == 0 {
			return nil, usagef("%s names no stages: name a plan by --plan", f.Graph)
		}
		p = &plan.Plan{Graph: l.Hash(), Machine: m.Name, Method: "pipedream", Decision: plan.Decision{Device: stage}}
	default:
		return nil, usagef("name a placement by --plan or --split")
	}
	switch f.as {
	case "schedule":
		s, err := simulateSchedule(l, m, p, f.contention)
		if err != nil {
			return nil, err
		}
		return s.schedule.Write, nil
	case "plan":
		file, err := p.File(l.Graph, m)
		if err != nil {
			return nil, err
		}
		if changed != nil {
			file.GraphHash, file.Changes, file.ChangedHash = changed.GraphHash, changed.Changes, changed.ChangedHash
		}
		return file.Write, nil
	case "split":
		return exportSplit(l.file.Partitioning, p)
	case "pipedream":
		if l.file.Profile == nil {
			return nil, usagef("--as pipedream goes with a PipeDream profile as --graph")
		}
		return func(w io.Writer) error { return l.file.Profile.Write(w, p.Device) }, nil
	}
	return nil, usagef("--as %s: want plan, schedule, split or pipedream", f.as)
}

// scheduledStep is a simulated step with its static order.
type scheduledStep struct {
	result   *sim.Result // with a trace
	schedule *schedule.Schedule
}

// simulateSchedule simulates p under its own priorities; contention is as
// problem.Options says. It reports a plan that does not fit.
func simulateSchedule(l loaded, m *hw.Machine, p *plan.Plan, contention string) (*scheduledStep, error) {
	s, _, err := problem.Simulator(l.Source, m, problem.Options{Scheduler: problem.FIFO, Contention: contention})
	if err != nil {
		return nil, err
	}
	r, err := s.Run(p, sim.Options{Trace: true})
	if err != nil {
		return nil, err
	}
	return &scheduledStep{r, schedule.New(l.Graph, m, p, r)}, nil
}

// exportSplit returns what writes p as a split of x with its loads.
func exportSplit(x *dnnpart.Instance, p *plan.Plan) (func(io.Writer) error, error) {
	if x == nil {
		return nil, usagef("--as split goes with a dnn-partitioning instance as --graph")
	}
	m, err := x.Times.Machine()
	if err != nil {
		return nil, err
	}
	if err := p.Check(x.Graph, m); err != nil {
		return nil, fmt.Errorf("the plan is not for the instance's own machine: %w", err)
	}
	s, err := throughput.FromTable(x.Graph, m, x.Times)
	if err != nil {
		return nil, err
	}
	y, err := throughput.New(s)
	if err != nil {
		return nil, err
	}
	var load []float64
	for _, l := range y.Evaluate(y.Gather(p.Device)).Loads {
		load = append(load, 1e3*l.Seconds())
	}
	return func(w io.Writer) error { return x.WriteSplit(w, p.Device, load) }, nil
}
