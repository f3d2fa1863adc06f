package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"placer/graph/formats/pipedream"
	"placer/internal/bench"
	"placer/internal/fsx"
)

// networkBandwidth is that of 25 Gb/s Ethernet, which joins the servers of
// PipeDream's second cluster.
const networkBandwidth = "3.125 GB/s"

func (c *console) pipelineCommand() *cobra.Command {
	f := bench.Pipeline{Workers: []int{pipedream.Devices}, Bandwidths: []string{networkBandwidth}}
	var graph, conf, profile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Cut a PipeDream profile into stages with replicas",
		Long: "pipeline cuts the layers of a PipeDream profile into stages and gives each its\n" +
			"replicas, so that a minibatch ends as often as possible: PipeDream's planner\n" +
			"(Narayanan et al., SOSP 2019, section 3.1). Machines of several levels are named\n" +
			"from the inside out: --workers 8,2 --bandwidth '12 GB/s,3.125 GB/s' is two servers\n" +
			"of eight. One worker, all workers as replicas, and the configurations that --conf\n" +
			"names stand beside the plan.",
		Example: "  placer pipeline --graph vgg16.graph.txt --workers 16\n" +
			"  placer pipeline --graph vgg16.graph.txt --workers 16 \\\n" +
			"     --conf stage_conf/vgg16/gpus=16/hybrid_conf.json\n" +
			"  placer pipeline --graph gnmt.graph.txt --workers 4 -o conf.json --profile gnmt_partitioned.txt",
		RunE: func(*cobra.Command, []string) error {
			if graph == "" {
				return usagef("name a PipeDream profile by --graph")
			}
			if err := errors.Join(checkOutput(conf, asJSON), fileOnly("--profile", profile)); err != nil {
				return err
			}
			if err := f.Validate(); err != nil {
				return err
			}
			l, err := c.loadGraph(&graphFlags{Graph: graph})
			if err != nil {
				return err
			}
			c.tell(l)
			if l.file.Profile == nil {
				return usagef("%s is no PipeDream profile", graph)
			}
			p, err := f.Run(l.file.Profile, graph)
			if err != nil {
				return err
			}
			if profile != "" {
				if err := fsx.WriteFile(profile, p.WriteProfile); err != nil {
					return fmt.Errorf("%s: %w", profile, err)
				}
			}
			return c.emit(conf, p.WriteConf, asJSON, p.Report)
		},
	}
	cmd.Flags().StringVar(&graph, "graph", "", "PipeDream profile")
	cmd.Flags().IntSliceVar(&f.Workers, "workers", f.Workers, "workers; for several levels the widths, innermost first")
	cmd.Flags().StringSliceVar(&f.Bandwidths, "bandwidth", f.Bandwidths, "bandwidth between the workers of each level")
	cmd.Flags().StringSliceVar(&f.Confs, "conf", nil, "PipeDream configurations to set beside the plan")
	cmd.Flags().StringVarP(&conf, "output", "o", "", "write the plan as a PipeDream configuration; - writes it to stdout instead of the table")
	cmd.Flags().StringVar(&profile, "profile", "", "write the profile with the stage of every layer")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
