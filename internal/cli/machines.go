package cli

import (
	"github.com/spf13/cobra"

	"placer/hw"
	"placer/internal/report"
)

func (c *console) machinesCommand() *cobra.Command {
	var f machineFlags
	cmd := &cobra.Command{Use: "machines", Short: "List the built-in machines, or describe one machine",
		Example: "  placer machines\n  placer machines --gpu v100\n  placer machines --machine box.json\n  placer machines --cards"}
	cmd.AddCommand(c.initCommand(), c.detectCommand(), c.splitCommand())
	f.add(cmd.Flags())
	var cards bool
	cmd.Flags().BoolVar(&cards, "cards", false, "list the cards that 'placer machines init --gpu' knows")
	return c.printing(cmd, func(cmd *cobra.Command) (document, error) {
		if err := f.check(cmd); err != nil {
			return nil, err
		}
		if cards {
			if err := useless(cmd, "--cards", "gpu", "gpus", "machine", "cpu"); err != nil {
				return nil, err
			}
			return report.SummariseCards(hw.Cards()), nil
		}
		if f.CPU && !f.named() && f.GPUs == 0 {
			return nil, usagef("--cpu goes with --gpu, --gpus or --machine: without them all machines are listed")
		}
		doc := report.Machines{Format: report.MachinesFormat}
		if f.named() || f.GPUs > 0 {
			m, err := c.loadMachine(&f)
			if err != nil {
				return nil, err
			}
			doc.Machines = append(doc.Machines, report.SummariseMachine(m))
			return &doc, nil
		}
		for _, name := range hw.Names() {
			m, err := hw.Load(name)
			if err != nil {
				return nil, err
			}
			s := report.SummariseMachine(m)
			s.Name = name // what --gpu takes
			doc.Machines = append(doc.Machines, s)
		}
		return &doc, nil
	})
}
