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

// pipelineFlags are the flags of pipeline.
type pipelineFlags struct {
	bench.Pipeline
	graph           string
	output, profile string // files to write
	json            bool
}

func (c *console) pipelineCommand() *cobra.Command {
	f := pipelineFlags{Pipeline: bench.Pipeline{Workers: []int{pipedream.Devices}, Bandwidths: []string{networkBandwidth}}}
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
			if err := f.check(); err != nil {
				return err
			}
			return c.pipeline(&f)
		},
	}
	cmd.Flags().StringVar(&f.graph, "graph", "", "PipeDream profile")
	cmd.Flags().IntSliceVar(&f.Workers, "workers", f.Workers, "workers; for several levels the widths, innermost first")
	cmd.Flags().StringSliceVar(&f.Bandwidths, "bandwidth", f.Bandwidths, "bandwidth between the workers of each level")
	cmd.Flags().StringSliceVar(&f.Confs, "conf", nil, "PipeDream configurations to set beside the plan")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the plan as a PipeDream configuration; - writes it to stdout instead of the table")
	cmd.Flags().StringVar(&f.profile, "profile", "", "write the profile with the stage of every layer")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// check reports the first fault.
func (f *pipelineFlags) check() error {
	if f.graph == "" {
		return usagef("name a PipeDream profile by --graph")
	}
	if err := errors.Join(checkOutput(f.output, f.json), fileOnly("--profile", f.profile)); err != nil {
		return err
	}
	return f.Validate()
}

// pipeline cuts the profile and prints the stages.
func (c *console) pipeline(f *pipelineFlags) error {
	l, err := c.loadGraph(&graphFlags{Graph: f.graph})
	if err != nil {
		return err
	}
	c.tell(l)
	if l.file.Profile == nil {
		return usagef("%s is no PipeDream profile", inputName(f.graph))
	}
	p, err := f.Run(l.file.Profile, f.graph)
	if err != nil {
		return err
	}
	if f.profile != "" {
		if err := fsx.WriteFile(f.profile, p.WriteProfile); err != nil {
			return fmt.Errorf("%s: %w", f.profile, err)
		}
	}
	return c.emit(f.output, p.WriteConf, f.json, p.Report)
}
