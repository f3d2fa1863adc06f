package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"placer/internal/bench"
	"placer/measure/session"
)

func (c *console) benchStepsCommand() *cobra.Command {
	f := bench.DefaultSteps()
	var machine machineFlags
	var libraries libraryFlags
	var byRule, rank []string
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "steps",
		Short: "Compare measured with predicted steps, on one GPU that stands for several",
		Long: "steps places workloads on 1, 2, 4 devices that all stand on the machine's first GPU, by\n" +
			"the human rule with and without fusion and at random, runs the steps, and prints mean\n" +
			"error and Kendall's tau of the predictions. It measures until it is done or the budget\n" +
			"ends. Without a GPU it exits with code 4.",
		Example: "  placer bench steps --machine here.json --partition -o steps.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := machine.check(cmd); err != nil {
				return err
			}
			if err := machine.checkNamed("bench steps"); err != nil {
				return err
			}
			if err := errors.Join(f.Validate(), checkOutput(out, asJSON)); err != nil {
				return err
			}
			if out != "-" { // else there is the one document at the end
				f.Out = out
			}
			gpus, err := c.openGPUs(libraries)
			if err != nil {
				return err
			}
			defer gpus.warm.Close()
			m, err := c.loadMachine(&machine)
			if err != nil {
				return err
			}
			f.Workloads, f.Rank = splitWorkloads(byRule), splitWorkloads(rank)
			host := bench.StepsHost{Host: c.bench(), Driver: gpus.driver, BLAS: gpus.blas, Session: gpus.session}
			if host.Name, err = session.Host(gpus.driver, gpus.blas, []int{0}, gpus.version); err != nil {
				return err
			}
			if monitor, err := c.hardware.watch(); err == nil {
				defer monitor.Close()
				host.State = monitor.Read
			}
			doc, err := f.Run(cmd.Context(), m, host)
			if err != nil {
				return err
			}
			return c.print(asJSON || out == "-", doc)
		},
	}
	fl := cmd.Flags()
	machine.addMeasured(fl)
	libraries.add(fl)
	fl.StringArrayVar(&byRule, "workloads", f.Workloads, "workloads placed by rule, separated by commas")
	fl.StringArrayVar(&rank, "rank", f.Rank, "workloads, separated by commas, of which random plans are ranked, on every number of devices above 1")
	fl.IntSliceVar(&f.Devices, "devices", f.Devices, "numbers of devices")
	fl.IntVar(&f.Plans, "plans", f.Plans, "random plans of each kind")
	fl.StringVar(&f.Link, "link", f.Link, "bandwidth between two devices")
	fl.StringVar(&f.Latency, "latency", f.Latency, "latency between two devices")
	fl.BoolVar(&f.Partition, "partition", false, "devices get multiprocessors of their own (green contexts)")
	fl.IntVar(&f.Repeats, "repeats", f.Repeats, "timed steps, of which the median counts")
	fl.DurationVar(&f.Budget, "budget", f.Budget, "time after which no further plan is measured")
	alias(fl, "out", "output")
	fl.StringVarP(&out, "output", "o", "", "write all that was measured there (JSON), also after each workload; - writes it to stdout instead of the tables")
	fl.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
