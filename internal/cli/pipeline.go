package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"placer/baselines/stages"
	"placer/graph/pipedream"
	"placer/internal/foreign"
	"placer/internal/fsx"
	"placer/report"
	"placer/units"
)

// pipelineFlags are the flags of the pipeline command.
type pipelineFlags struct {
	graph      string
	workers    []int
	bandwidths []string
	confs      []string
	conf       string
	profile    string
	json       bool
}

// networkBandwidth is that of 25 Gb/s Ethernet, which joins the servers of
// PipeDream's second cluster.
const networkBandwidth = "3.125 GB/s"

func (c *console) pipelineCommand() *cobra.Command {
	var f pipelineFlags
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
			"  placer pipeline --graph vgg16.graph.txt --workers 16 --conf stage_conf/vgg16/gpus=16/hybrid_conf.json\n" +
			"  placer pipeline --graph gnmt.graph.txt --workers 4 -o conf.json --profile gnmt_partitioned.txt",
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return c.pipeline(&f) },
	}
	cmd.Flags().StringVar(&f.graph, "graph", "", "PipeDream profile")
	cmd.Flags().IntSliceVar(&f.workers, "workers", []int{pipedream.Devices}, "workers; for several levels the widths, innermost first")
	cmd.Flags().StringSliceVar(&f.bandwidths, "bandwidth", []string{networkBandwidth}, "bandwidth between the workers of each level")
	cmd.Flags().StringSliceVar(&f.confs, "conf", nil, "PipeDream configurations to set beside the plan")
	cmd.Flags().StringVarP(&f.conf, "output", "o", "", "write the plan as a PipeDream configuration; - writes it to stdout instead of the table")
	cmd.Flags().StringVar(&f.profile, "profile", "", "write the profile with the stage of every layer")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// pipeline plans, compares, writes and prints.
func (c *console) pipeline(f *pipelineFlags) error {
	if f.graph == "" {
		return usagef("name a PipeDream profile by --graph")
	}
	if f.conf == "-" && f.json {
		return usagef("--json and -o - both want stdout")
	}
	if len(f.workers) != len(f.bandwidths) {
		return usagef("%d widths by --workers, %d by --bandwidth", len(f.workers), len(f.bandwidths))
	}
	var levels []stages.Level
	all := 1
	for k, n := range f.workers {
		b, err := units.ParseBytesPerSecond(f.bandwidths[k])
		if err != nil || b <= 0 {
			return usagef("--bandwidth %q: want a rate such as '25 GB/s'", f.bandwidths[k])
		}
		if n < 1 || all > 1<<16/n {
			return usagef("--workers %d: want 1 or more, and 65536 in all at most", n)
		}
		all *= n
		levels = append(levels, stages.Level{Width: n, Bandwidth: float64(b)})
	}
	x, err := c.readProfile(f.graph)
	if err != nil {
		return err
	}
	chain := stages.FromProfile(x)
	p, err := stages.Solve(chain, levels)
	if err != nil {
		return fmt.Errorf("%s: %w", f.graph, err)
	}
	doc := describePipeline(x, chain, levels, p)
	outer := levels[len(levels)-1].Bandwidth
	rival := func(name string, replicas []int) error {
		q, err := stages.Cut(chain, replicas, outer)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n := 0
		for _, m := range replicas {
			n += m
		}
		doc.Rivals = append(doc.Rivals, report.PipelineRival{Name: name, Workers: n, Shape: stages.Shape(q.Stages), Seconds: q.Seconds})
		return nil
	}
	if err := rival("one worker", []int{1}); err != nil {
		return err
	}
	if err := rival("data parallel", []int{all}); err != nil {
		return err
	}
	for _, path := range f.confs {
		data, err := foreign.ReadFile(path)
		if err != nil {
			return err
		}
		conf, err := pipedream.ReadConf(data, path)
		if err != nil {
			return err
		}
		if err := rival(path, conf.Replicas()); err != nil {
			return err
		}
	}
	return c.writePipeline(f, x, chain, p, doc)
}

// writePipeline writes the files that are asked for and prints the rest.
func (c *console) writePipeline(f *pipelineFlags, x *pipedream.Instance, chain *stages.Chain, p *stages.Plan, doc *report.Pipeline) error {
	if f.profile != "" {
		device := make([]uint8, x.Graph.NumOps())
		of := make([]int, len(x.Layers))
		for k, s := range p.Stages {
			if k > 255 {
				return fmt.Errorf("%s: a profile names at most 256 stages, the plan has %d", f.profile, len(p.Stages))
			}
			for l := s.From; l < s.To; l++ {
				of[chain.Layer[l]] = k
			}
		}
		for i, l := range x.Layer {
			device[i] = uint8(of[l])
		}
		if err := fsx.WriteFile(f.profile, func(w io.Writer) error { return x.Write(w, device) }); err != nil {
			return err
		}
	}
	var replicas []int
	for _, s := range p.Stages {
		replicas = append(replicas, s.Replicas)
	}
	switch conf := pipedream.NewConf(replicas); f.conf {
	case "":
	case "-":
		return conf.Write(c.out)
	default:
		if err := fsx.WriteFile(f.conf, conf.Write); err != nil {
			return err
		}
	}
	return c.print(f.json, doc)
}

// readProfile reads the profile at path.
func (c *console) readProfile(path string) (*pipedream.Instance, error) {
	l, err := c.loadGraph(&graphFlags{file: path})
	if err != nil {
		return nil, err
	}
	if l.profile == nil {
		return nil, usagef("%s is no PipeDream profile", path)
	}
	return l.profile, nil
}

func describePipeline(x *pipedream.Instance, chain *stages.Chain, levels []stages.Level, p *stages.Plan) *report.Pipeline {
	doc := &report.Pipeline{Format: report.PipelineFormat, Graph: x.Graph.Name(), Layers: chain.NumLayers(), Seconds: p.Seconds, Shape: stages.Shape(p.Stages), InFlight: stages.InFlight(p.Stages)}
	for _, l := range levels {
		doc.Levels = append(doc.Levels, report.PipelineLevel{Width: l.Width, Bandwidth: l.Bandwidth})
	}
	name := func(l int) string { return x.Layers[chain.Layer[l]].ID }
	for _, s := range p.Stages {
		cost := chain.Cost(s, levels[len(levels)-1].Bandwidth)
		doc.Stages = append(doc.Stages, report.PipelineStage{
			First: name(s.From), Last: name(s.To - 1), Layers: s.To - s.From, Replicas: s.Replicas,
			Compute: cost.Compute, Sync: cost.Sync, Transfer: cost.Transfer, Parameters: cost.Parameters,
		})
	}
	return doc
}
