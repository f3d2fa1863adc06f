package cli

import (
	"github.com/spf13/cobra"

	"placer/baselines/partition/balance"
	"placer/internal/bench"
)

func (c *console) benchPartitioningCommand() *cobra.Command {
	f := bench.Partitioning{Free: balance.Default()}
	cmd := &cobra.Command{
		Use:   "dnn-partitioning",
		Short: "Split the published partitioning instances by their largest load",
		Long: "dnn-partitioning reads the throughput instances of Tarnawski et al. (NeurIPS 2020)\n" +
			"under --data, as their repository has them, and prints for each the best cut of a\n" +
			"topological order, PipeDream's cut of biconnected components, the optimal contiguous\n" +
			"split, a split of any shape with its gap to a proven bound, and the experts' splits;\n" +
			"published figures stand beside them where --data has a reference_results.csv.",
		Example: "  placer bench dnn-partitioning --data dnn-partitioning",
	}

	cmd.Flags().StringVar(&f.Data, "data", "", "folder with throughput-inputs, and perhaps human-experts and reference_results.csv")
	cmd.Flags().IntVar(&f.Free.Moves, "moves", f.Free.Moves, "moves that the search for splits of any shape proposes")
	cmd.Flags().Uint64Var(&f.Free.Seed, "seed", f.Free.Seed, "seed of that search")
	return c.printing(cmd, func(cmd *cobra.Command) (document, error) { return f.Run(cmd.Context(), c.bench()) })
}
