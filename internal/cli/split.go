package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"placer/hw"
	"placer/measure"
	"placer/units"
)

// splitFlags are the flags of machines split.
type splitFlags struct {
	machineFlags
	parts, sms    int
	link, latency string
	bandwidth     units.BytesPerSecond // that link says
	delay         units.Seconds        // that latency says
	output        string
}

func (c *console) splitCommand() *cobra.Command {
	var f splitFlags
	cmd := &cobra.Command{
		Use:   "split",
		Short: "Make a machine of several devices on one GPU",
		Long: "split takes the first GPU of a machine and writes a machine of equal parts of it, with\n" +
			"links of chosen figures, for 'measure --logical'.",
		Example: "  placer machines split --machine here.json --parts 4 --link '25 GB/s' \\\n" +
			"     --latency '10 us' -o four.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.split(&f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().IntVar(&f.parts, "parts", 2, "number of parts")
	cmd.Flags().IntVar(&f.sms, "sms", 0, "multiprocessors of each part, where they are divided too")
	cmd.Flags().StringVar(&f.link, "link", "25 GB/s", "bandwidth between two parts")
	cmd.Flags().StringVar(&f.latency, "latency", "10 us", "latency between two parts")
	alias(cmd.Flags(), "out", "output")
	cmd.Flags().StringVarP(&f.output, "output", "o", "-", "write the machine file there; - prints it")
	return cmd
}

// check reads the figures of the links and reports the first fault.
func (f *splitFlags) check(cmd *cobra.Command) (err error) {
	if err := errors.Join(f.machineFlags.check(cmd), useless(cmd, "split, which takes the machine's first GPU", "gpus", "cpu")); err != nil {
		return err
	}
	if f.bandwidth, err = units.ParseBytesPerSecond(f.link); err != nil {
		return usagef("--link: %w", err)
	}
	if f.delay, err = units.ParseSeconds(f.latency); err != nil {
		return usagef("--latency: %w", err)
	}
	if f.parts < 2 || f.parts > hw.MaxPlaced {
		return usagef("--parts %d: want 2 to %d", f.parts, hw.MaxPlaced)
	}
	if f.sms < 0 {
		return usagef("--sms %d: want 0, for parts that share all multiprocessors, or more", f.sms)
	}
	return nil
}

// split writes a machine of parts of the first GPU.
func (c *console) split(f *splitFlags) error {
	m, err := c.loadMachine(&f.machineFlags)
	if err != nil {
		return err
	}
	if !f.named() {
		c.assumed("no machine is named: %s is taken", defaultGPU)
	}
	if m.Devices[0].Kind != hw.GPU {
		return usagef("the first device of machine %s is no GPU", m.Name)
	}
	l, err := measure.Logical(&m.Devices[0], f.parts, f.sms, f.bandwidth, f.delay)
	if err != nil {
		return usage(err)
	}
	return c.writeOutput(f.output, l.Write)
}
