package cli

import (
	"github.com/spf13/cobra"

	"placer/baselines/search/uncontended"
	"placer/internal/bench"
)

func (c *console) benchDopplerCommand() *cobra.Command {
	f := bench.Doppler{Search: uncontended.Default()}
	cmd := &cobra.Command{
		Use:   "doppler",
		Short: "Place DOPPLER's task graphs under its model",
		Long: "doppler reads the task graphs of DOPPLER (ICLR 2026) under --data and places them\n" +
			"on four devices (eight where the file's name starts with 8gpu) under the model it\n" +
			"trains on: first come first served, transfers without contention. It prints rules\n" +
			"of thumb, list schedulers and the specialised search beside a proven lower bound.",
		Example: "  placer bench doppler --data doppler",
	}

	cmd.Flags().StringVar(&f.Data, "data", "", "folder with the graphs, *.txt")
	cmd.Flags().IntVar(&f.Search.Steps, "steps", f.Search.Steps, "placements that the search clocks")
	cmd.Flags().Uint64Var(&f.Search.Seed, "seed", f.Search.Seed, "seed of the search")
	return c.printing(cmd, func(cmd *cobra.Command) (document, error) { return f.Run(cmd.Context(), c.bench()) })
}
