package cli

import (
	"github.com/spf13/cobra"

	"placer/hw"
	"placer/report"
)

func (c *console) machinesCommand() *cobra.Command {
	var f machineFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "machines",
		Short: "List the built-in machines, or describe one machine",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			doc := report.Machines{Format: report.MachinesFormat}
			if f.file != "" || cmd.Flags().Changed("gpu") || f.gpus > 0 {
				m, err := c.loadMachine(&f)
				if err != nil {
					return err
				}
				doc.Machines = append(doc.Machines, report.SummariseMachine(m))
			} else {
				for _, name := range hw.Names() {
					m, err := hw.Load(name)
					if err != nil {
						return err
					}
					s := report.SummariseMachine(m)
					s.Name = name // what --gpu takes
					doc.Machines = append(doc.Machines, s)
				}
			}
			return c.print(asJSON, &doc)
		},
	}
	cmd.AddCommand(c.detectCommand(), c.splitCommand())
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
