package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"placer/internal/report"
	"placer/workloads"
)

func (c *console) workloadsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "workloads", Short: "List the built-in workloads with their sizes and the papers'",
		Long: "workloads lists the built-in training graphs. A workload takes settings too, as\nrnnlm:layers=2,unroll=3 does (docs/workloads.md)."}
	return c.printing(cmd, func(cmd *cobra.Command) (document, error) {
		doc := report.Workloads{Format: report.WorkloadsFormat}
		for _, w := range workloads.List() {
			if err := cmd.Context().Err(); err != nil {
				return nil, err
			}
			g, err := workloads.Build(w.Name)
			if err != nil {
				return nil, fmt.Errorf("workload %s: %w", w.Name, err)
			}
			s := report.Summarise(w.Name, g, w.PublishedOps)
			s.GPUs = w.GPUs
			doc.Workloads = append(doc.Workloads, s)
		}
		return &doc, nil
	})
}
