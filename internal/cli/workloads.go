package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"placer/report"
	"placer/workloads"
)

func (c *console) workloadsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "workloads",
		Short: "List the built-in workloads with their sizes and the papers'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc := report.Workloads{Format: report.WorkloadsFormat}
			for _, w := range workloads.List() {
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				g, err := workloads.Build(w.Name)
				if err != nil {
					return fmt.Errorf("workload %s: %w", w.Name, err)
				}
				s := report.Summarise(w.Name, g, w.PublishedOps)
				s.GPUs = w.GPUs
				doc.Workloads = append(doc.Workloads, s)
			}
			return c.print(asJSON, &doc)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
