package bench

import (
	"fmt"
	"io"

	"placer/baselines/partition/pipedreamplan"
	"placer/graph/formats/foreign"
	"placer/graph/formats/pipedream"
	"placer/internal/report"
	"placer/units"
)

// Pipeline plans the stages of a PipeDream profile (Narayanan et al., SOSP 2019,
// section 3.1) beside rivals.
type Pipeline struct {
	Workers    []int    // widths of the levels, innermost first
	Bandwidths []string // between the workers of each level, as 25 GB/s
	Confs      []string // files of PipeDream configurations to set beside the plan
}

// PipelinePlan is what a pipeline came to.
type PipelinePlan struct {
	Report  *report.Pipeline
	profile *pipedream.Instance
	chain   *pipedreamplan.Chain
	plan    *pipedreamplan.Plan
}

// levels returns the levels of f and the workers of all of them.
func (f *Pipeline) levels() (levels []pipedreamplan.Level, all int, err error) {
	if len(f.Workers) != len(f.Bandwidths) {
		return nil, 0, ConfigErrorf("--workers names %d levels and --bandwidth %d: want one bandwidth for each level", len(f.Workers), len(f.Bandwidths))
	}
	all = 1
	for k, n := range f.Workers {
		b, err := units.ParseBytesPerSecond(f.Bandwidths[k])
		if err != nil || b <= 0 {
			return nil, 0, ConfigErrorf("--bandwidth %q: want a rate such as '25 GB/s'", f.Bandwidths[k])
		}
		if n < 1 || all > 1<<16/n {
			return nil, 0, ConfigErrorf("--workers %d: want 1 or more, and 65536 in all at most", n)
		}
		all *= n
		levels = append(levels, pipedreamplan.Level{Width: n, Bandwidth: float64(b)})
	}
	return levels, all, nil
}

// Validate reports the first fault.
func (f *Pipeline) Validate() error {
	_, _, err := f.levels()
	return err
}

// Run plans the profile x of that name.
func (f *Pipeline) Run(x *pipedream.Instance, name string) (*PipelinePlan, error) {
	levels, all, err := f.levels()
	if err != nil {
		return nil, err
	}
	r := &PipelinePlan{profile: x, chain: pipedreamplan.FromProfile(x)}
	if r.plan, err = pipedreamplan.Solve(r.chain, levels); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.describe(levels)
	if err := r.rival("one worker", []int{1}, levels); err != nil {
		return nil, err
	}
	if err := r.rival("data parallel", []int{all}, levels); err != nil {
		return nil, err
	}
	for _, path := range f.Confs {
		data, err := foreign.ReadFile(path)
		if err != nil {
			return nil, err
		}
		conf, err := pipedream.ReadConf(data, path)
		if err != nil {
			return nil, err
		}
		if err := r.rival(path, conf.Replicas(), levels); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// describe fills in the report of the plan alone.
func (r *PipelinePlan) describe(levels []pipedreamplan.Level) {
	p := r.plan
	r.Report = &report.Pipeline{Format: report.PipelineFormat, Graph: r.profile.Graph.Name(), Layers: r.chain.NumLayers(), Seconds: p.Seconds, Shape: pipedreamplan.Shape(p.Stages), InFlight: pipedreamplan.InFlight(p.Stages)}
	for _, l := range levels {
		r.Report.Levels = append(r.Report.Levels, report.PipelineLevel{Width: l.Width, Bandwidth: l.Bandwidth})
	}
	name := func(l int) string { return r.profile.Layers[r.chain.Layer[l]].ID }
	for k, s := range p.Stages {
		cost := p.Costs[k]
		r.Report.Stages = append(r.Report.Stages, report.PipelineStage{
			First: name(s.From), Last: name(s.To - 1), Layers: s.To - s.From, Replicas: s.Replicas,
			Compute: cost.Compute, Sync: cost.Sync, Transfer: cost.Transfer, Parameters: cost.Parameters,
		})
	}
}

// rival adds the best cut into stages of so many replicas.
func (r *PipelinePlan) rival(name string, replicas []int, levels []pipedreamplan.Level) error {
	q, err := pipedreamplan.Cut(r.chain, replicas, levels)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n := 0
	for _, m := range replicas {
		n += m
	}
	r.Report.Rivals = append(r.Report.Rivals, report.PipelineRival{Name: name, Workers: n, Shape: pipedreamplan.Shape(q.Stages), Seconds: q.Seconds})
	return nil
}

// WriteConf writes the plan as a PipeDream configuration.
func (r *PipelinePlan) WriteConf(w io.Writer) error {
	var replicas []int
	for _, s := range r.plan.Stages {
		replicas = append(replicas, s.Replicas)
	}
	return pipedream.NewConf(replicas).Write(w)
}

// WriteProfile writes the profile with the stage of every layer.
func (r *PipelinePlan) WriteProfile(w io.Writer) error {
	if n := len(r.plan.Stages); n > 256 {
		return fmt.Errorf("a profile names at most 256 stages, the plan has %d", n)
	}
	of := make([]uint8, len(r.profile.Layers))
	for k, s := range r.plan.Stages {
		for l := s.From; l < s.To; l++ {
			of[r.chain.Layer[l]] = uint8(k)
		}
	}
	device := make([]uint8, r.profile.Graph.NumOps())
	for i, l := range r.profile.Layer {
		device[i] = of[l]
	}
	return r.profile.Write(w, device)
}
