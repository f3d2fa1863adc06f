package report

import (
	"cmp"
	"io"
	"strings"

	"placer/internal/words"
	"placer/units"
)

// Formats of the documents on the pretrained policy.
const (
	PlacedFormat   = "placer placed 1"
	PoliciesFormat = "placer policy 1"
)

// Placed is what a pretrained policy came to on a graph.
type Placed struct {
	Format  string  `json:"format"`
	Graph   Graph   `json:"graph"`
	Machine Machine `json:"machine"`
	Policy  string  `json:"policy"` // file, or "built-in"
	// Distance is how far the graph lies from the nearest training graph; beyond
	// Reach the graph is out of distribution.
	Distance float64 `json:"distance"`
	Reach    float64 `json:"reach"`
	Human    float64 `json:"human_step_time_s"`
	// HumanFits says whether the human expert's placement fits the machine.
	HumanFits bool        `json:"human_fits"`
	Rows      []PlacedRow `json:"rows"`
	Seconds   float64     `json:"seconds"` // features, forward passes and evaluations
	// Note says what was evaluated beside the rows' evaluations.
	Note string `json:"note,omitempty"`
}

// PlacedRow is one way to use the policy.
type PlacedRow struct {
	Method      string  `json:"method"` // greedy, best of k, fine-tuned
	StepTime    float64 `json:"step_time_s"`
	Feasible    bool    `json:"feasible"`
	Reduction   float64 `json:"reduction_vs_human"`
	Evaluations int     `json:"evaluations"`
}

// WriteText writes p as a table.
func (p *Placed) WriteText(w io.Writer) error {
	pg := newPage(w)
	t := newTable("method", ">step time", ">reduction", ">evaluations")
	t.row("human", stepOf(p.Human, p.HumanFits), "", "1")
	for _, r := range p.Rows {
		reduction := "-"
		if r.Feasible && p.HumanFits {
			reduction = percentOf(r.Reduction)
		}
		t.row(r.Method, stepOf(r.StepTime, r.Feasible), reduction, r.Evaluations)
	}
	pg.prosef("%s on %s, policy %s\n", p.Graph.Name, p.Machine.Name, p.Policy)
	pg.table(t)
	if p.Note != "" {
		pg.prosef("%s\n", p.Note)
	}
	verdict := "within what training covers"
	if p.Distance > p.Reach {
		verdict = "out of the policy's distribution: search instead, or fine-tune"
	}
	pg.prosef("distance from training %.2f, measured up to %.2f: %s\n", p.Distance, p.Reach, verdict)
	return pg.err
}

func stepOf(s float64, fits bool) string {
	if !fits {
		return "does not fit"
	}
	return units.Seconds(s).String()
}

// Policy is a policy's transfer card.
type Policy struct {
	Format  string         `json:"format"`
	Policy  string         `json:"policy"`
	Weights int            `json:"weights"`
	Trained []string       `json:"trained"`
	HeldOut []string       `json:"held_out"`
	Steps   int            `json:"steps"`
	Samples int            `json:"samples"`
	Graphs  int            `json:"graphs"`
	Reach   float64        `json:"reach"`
	Results []PolicyResult `json:"results"`
}

// PolicyResult is a measured row of a card; reductions are against the human
// expert, 0 to 1.
type PolicyResult struct {
	Workload string  `json:"workload"`
	Devices  int     `json:"devices"`
	HeldOut  bool    `json:"held_out"`
	Greedy   float64 `json:"greedy"`
	Best     float64 `json:"best_of_16"`
	Tuned    float64 `json:"fine_tuned"`
}

// WriteText writes the card.
func (p *Policy) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.prosef("policy %s: %d weights\n", p.Policy, p.Weights)
	pg.prosef("trained on %s; held out: %s\n", strings.Join(p.Trained, ", "), cmp.Or(strings.Join(p.HeldOut, ", "), "nothing"))
	pg.prosef("%s, %s, %s; measured up to distance %.2f\n", words.Count(p.Steps, "step", "steps"), words.Count(p.Samples, "placement", "placements"), words.Count(p.Graphs, "graph", "graphs"), p.Reach)
	if len(p.Results) == 0 {
		return pg.err
	}
	pg.notes("", "reductions of the step time against the human expert; held out: by a policy trained without the family")
	t := newTable("workload", ">GPUs", "family", ">greedy", ">best of 16", ">fine-tuned")
	for _, r := range p.Results {
		family := "trained on"
		if r.HeldOut {
			family = "held out"
		}
		tuned := "-" // not measured
		if r.Tuned != 0 {
			tuned = percentOf(r.Tuned)
		}
		t.row(r.Workload, r.Devices, family, percentOf(r.Greedy), percentOf(r.Best), tuned)
	}
	pg.table(t)
	return pg.err
}
