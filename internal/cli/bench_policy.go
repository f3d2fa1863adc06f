package cli

import (
	"github.com/spf13/cobra"

	"placer/internal/bench"
)

func (c *console) benchPolicyCommand() *cobra.Command {
	f := bench.DefaultNetwork()
	var on string
	var libraries libraryFlags
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Measure how fast the policy network learns, on the CPU and on a GPU",
		Long: "policy runs the network of GO at the sizes of GDP on a random graph: forward, and a\n" +
			"gradient of PPO's objective with an optimiser step. It prints nodes a second, the\n" +
			"median of the repeats; with --policy-device cuda of CPU and GPU, their ratio, and by\n" +
			"how much their logits and gradients differ.",
		Example: "  placer bench policy --policy-device cuda --nodes 24000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(out, asJSON); err != nil {
				return err
			}
			device, closed, err := c.openPolicyDevice(on, libraries)
			if err != nil {
				return err
			}
			defer closed()
			r, err := f.Run(cmd.Context(), device, c.bench())
			if err != nil {
				return err
			}
			return c.save(out, asJSON, r)
		},
	}
	addPolicyDevice(cmd.Flags(), &on)
	libraries.add(cmd.Flags())
	cmd.Flags().IntVar(&f.Nodes, "nodes", f.Nodes, "nodes of the graph")
	cmd.Flags().IntVar(&f.Devices, "devices", f.Devices, "devices to choose from")
	cmd.Flags().IntVar(&f.Samples, "samples", f.Samples, "sampled placements in the objective")
	cmd.Flags().IntVar(&f.Repeats, "repeats", f.Repeats, "timed repeats, of which the median counts")
	cmd.Flags().IntVar(&f.Workers, "workers", f.Workers, "goroutines of the CPU's side")
	cmd.Flags().Uint64Var(&f.Seed, "seed", f.Seed, "seed of graph and weights")
	alias(cmd.Flags(), "out", "output")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the figures there too (JSON); - writes them to stdout instead of the text")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
