package report

import (
	"fmt"
	"io"
	"strings"

	"placer/internal/words"
	"placer/units"
)

// PipelineFormat names the version of Pipeline as a JSON document.
const PipelineFormat = "placer pipeline 1"

// Pipeline is a chain of layers cut into replicated stages.
type Pipeline struct {
	Format  string          `json:"format"`
	Graph   string          `json:"graph"`
	Layers  int             `json:"layers"`
	Levels  []PipelineLevel `json:"levels"` // innermost first
	Seconds float64         `json:"minibatch_s"`
	Shape   string          `json:"shape"` // replicas of the stages, 15-1
	// InFlight are the minibatches under way that keep every stage busy.
	InFlight int             `json:"minibatches_in_flight"`
	Stages   []PipelineStage `json:"stages"`
	Rivals   []PipelineRival `json:"rivals"`
}

// PipelineLevel is workers, or groups of those of the level before.
type PipelineLevel struct {
	Width     int     `json:"width"`
	Bandwidth float64 `json:"bandwidth_bytes_s"`
}

// PipelineStage is a stage; times are seconds per minibatch, at the levels at
// which the replicas and the cut lie.
type PipelineStage struct {
	First      string  `json:"first_layer"`
	Last       string  `json:"last_layer"`
	Layers     int     `json:"layers"`
	Replicas   int     `json:"replicas"`
	Compute    float64 `json:"compute_s"`
	Sync       float64 `json:"synchronise_s"`
	Transfer   float64 `json:"transfer_s"` // with the stage before
	Parameters float64 `json:"parameter_bytes"`
}

// PipelineRival is another configuration under the same model.
type PipelineRival struct {
	Name    string  `json:"name"`
	Workers int     `json:"workers"`
	Shape   string  `json:"shape"`
	Seconds float64 `json:"minibatch_s"`
}

// WriteText writes p as tables.
func (p *Pipeline) WriteText(w io.Writer) error {
	pg := newPage(w)
	var levels []string
	for _, l := range p.Levels {
		levels = append(levels, fmt.Sprintf("%d at %s", l.Width, units.BytesPerSecond(l.Bandwidth)))
	}
	pg.prosef("%s: %s on workers %s; %s, a minibatch every %s, %d in flight\n", p.Graph, words.Count(p.Layers, "layer", "layers"), strings.Join(levels, " by "), p.Shape, units.Seconds(p.Seconds), p.InFlight)
	t := newTable(">stage", ">layers", "first", "last", ">replicas", ">compute", ">synchronise", ">transfer", ">parameters")
	for k, s := range p.Stages {
		t.row(k, s.Layers, s.First, s.Last, s.Replicas, seconds(s.Compute), seconds(s.Sync), seconds(s.Transfer), units.Bytes(s.Parameters))
	}
	pg.table(t)
	pg.printf("\n")
	t = newTable("configuration", ">workers", "replicas", ">minibatch", ">slower")
	for _, r := range p.Rivals {
		t.row(r.Name, r.Workers, r.Shape, seconds(r.Seconds), fmt.Sprintf("%.1f%%", 100*(r.Seconds/p.Seconds-1)))
	}
	pg.table(t)
	pg.notes("", "compute, synchronise, transfer: per minibatch; configurations name replicas alone and are cut where they are fastest")
	return pg.err
}
