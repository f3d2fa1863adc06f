package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"placer/internal/bench"
	"placer/measure/session"
)

// benchStepsFlags are the flags of bench steps.
type benchStepsFlags struct {
	bench.Steps
	machine   machineFlags
	libraries libraryFlags
	byRule    []string // lists of workloads
	ranked    []string
	output    string
	json      bool
}

func (c *console) benchStepsCommand() *cobra.Command {
	f := benchStepsFlags{Steps: bench.DefaultSteps()}
	cmd := &cobra.Command{
		Use:   "steps",
		Short: "Compare measured with predicted steps, on one GPU that stands for several",
		Long: "steps places workloads on 1, 2, 4 devices that all stand on the machine's first GPU, by\n" +
			"the human rule with and without fusion and at random, runs the steps, and prints mean\n" +
			"error and Kendall's tau of the predictions. It measures until it is done or the budget\n" +
			"ends. Without a GPU it exits with code 4.",
		Example: "  placer bench steps --machine here.json --partition -o steps.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.benchSteps(cmd.Context(), &f)
		},
	}
	fl := cmd.Flags()
	f.machine.addMeasured(fl)
	f.libraries.add(fl)
	fl.StringArrayVar(&f.byRule, "workloads", f.Workloads, "workloads placed by rule, separated by commas")
	fl.StringArrayVar(&f.ranked, "rank", f.Rank, "workloads, separated by commas, of which random plans are ranked, on every number of devices above 1")
	fl.IntSliceVar(&f.Devices, "devices", f.Devices, "numbers of devices")
	fl.IntVar(&f.Plans, "plans", f.Plans, "random plans of each kind")
	fl.StringVar(&f.Link, "link", f.Link, "bandwidth between two devices")
	fl.StringVar(&f.Latency, "latency", f.Latency, "latency between two devices")
	fl.BoolVar(&f.Partition, "partition", false, "devices get multiprocessors of their own (green contexts)")
	fl.IntVar(&f.Repeats, "repeats", f.Repeats, "timed steps, of which the median counts")
	fl.DurationVar(&f.Budget, "budget", f.Budget, "time after which no further plan is measured")
	alias(fl, "out", "output")
	fl.StringVarP(&f.output, "output", "o", "", "write all that was measured there (JSON), also after each workload; - writes it to stdout instead of the tables")
	fl.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// check completes what is measured and reports the first fault.
func (f *benchStepsFlags) check(cmd *cobra.Command) error {
	if err := f.machine.check(cmd); err != nil {
		return err
	}
	if err := f.machine.checkNamed("bench steps"); err != nil {
		return err
	}
	if err := errors.Join(f.Validate(), checkOutput(f.output, f.json)); err != nil {
		return err
	}
	if f.output != "-" { // else there is the one document at the end
		f.Out = f.output
	}
	f.Workloads, f.Rank = splitWorkloads(f.byRule), splitWorkloads(f.ranked)
	return nil
}

// benchSteps measures and prints what was measured.
func (c *console) benchSteps(ctx context.Context, f *benchStepsFlags) error {
	gpus, err := c.openGPUs(f.libraries)
	if err != nil {
		return err
	}
	defer gpus.warm.Close()
	m, err := c.loadMachine(&f.machine)
	if err != nil {
		return err
	}
	host := bench.StepsHost{Host: c.bench(), Driver: gpus.driver, BLAS: gpus.blas, Session: gpus.session}
	if host.Name, err = session.Host(gpus.driver, gpus.blas, []int{0}, gpus.version); err != nil {
		return err
	}
	if monitor, err := c.hardware.watch(); err == nil {
		defer monitor.Close()
		host.State = monitor.Read
	}
	doc, err := f.Run(ctx, m, host)
	if err != nil {
		return err
	}
	return c.print(f.json || f.output == "-", doc)
}
