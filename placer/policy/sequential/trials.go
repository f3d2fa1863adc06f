package sequential

import (
	"context"
	"fmt"
	"math"
	"slices"

	"placer/plan"
)

// trials are what the proposals came to on training graphs. Letters: G graphs, C
// proposals, Q figures of a summary.
type trials struct {
	Families []string    `json:"families"` // [G]
	Graphs   [][]float32 `json:"graphs"`   // [G,Q] standardised summaries
	Times    [][]float32 `json:"times"`    // [G,C] steps over the expert's
	// Cuts are logarithms, [G]: when the policy's own schedule of the balanced cut by time
	// steps ends over when that of the cut by layers does; 0 without time steps. Files
	// without them count all as 0.
	Cuts []float64 `json:"cuts,omitempty"`
	// Width is the distance, in deviations, at which a graph counts e^(-1/2) of what one
	// at hand counts; 0: all count the same.
	Width float64 `json:"width"`

	logs  [][]float64 // [C,G] logarithms of Times
	tells []bool      // [G] whether some proposal was better than none
	works []work      // [G] while the width is fitted
}

// read makes of Times what choosing needs.
func (t *trials) read() {
	t.logs, t.tells = nil, make([]bool, len(t.Times))
	if len(t.Times) == 0 {
		return
	}
	t.logs = make([][]float64, len(t.Times[0]))
	for c := range t.logs {
		t.logs[c] = make([]float64, len(t.Times))
		for g, row := range t.Times {
			t.logs[c][g] = math.Log(float64(row[c]))
			t.tells[g] = t.tells[g] || t.logs[c][g] < math.Log(infeasibleExpert)
		}
	}
}

// expected returns the logarithms of times, [C,G], that the trials lead to expect of a
// graph whose cuts compare as cut does. Whether time steps depend on each other or not
// decides whether deciding by them pays at all, and shows in the two cuts.
func (t *trials) expected(cut float64) [][]float64 {
	out, by := slices.Clone(t.logs), slices.Repeat([]float64{cut}, len(t.Graphs))
	for g, x := range t.Cuts {
		by[g] -= x
	}
	for c := range perLevel { // of time steps, the first
		out[c] = slices.Clone(out[c])
		for g, x := range by {
			out[c][g] += x
		}
	}
	return out
}

// weights returns what each graph counts for a graph of that summary, [G], which is not
// read where all count the same; those of a family left out count nothing, nor do those on
// which no proposal is better than none.
func (t *trials) weights(summary []float32, without func(family string) bool) []float64 {
	w := slices.Repeat([]float64{1}, len(t.Graphs))
	if t.Width > 0 {
		nearest := math.Inf(1)
		for g, x := range t.Graphs {
			w[g] = rootMeanSquare(x, summary)
			if t.tells[g] {
				nearest = min(nearest, w[g])
			}
		}
		for g, d := range w { // beside the nearest, so that something always counts
			w[g] = math.Exp((nearest*nearest - d*d) / (2 * t.Width * t.Width))
		}
	}
	for g := range w {
		if !t.tells[g] || without != nil && without(t.Families[g]) {
			w[g] = 0
		}
	}
	return w
}

// widths are those that fit tries.
var widths = []float64{0, 2, 1, 0.5, 0.25}

// fit chooses the width by leaving out one family after another: that by which the best
// of the first proposals, chosen on the other families, is shortest in the geometric mean
// over graphs and over any number of proposals up to DefaultSamples.
func (t *trials) fit() {
	least, best := math.Inf(1), 0.0
	for _, width := range widths {
		t.Width = width
		sum := 0.0
		for g := range t.Graphs {
			w := t.weights(t.Graphs[g], func(family string) bool { return family == t.Families[g] })
			chosen, shortest := choose(t.expected(t.Cuts[g]), w, t.works[g], DefaultSamples), math.Inf(1)
			for k := range DefaultSamples {
				if k < len(chosen) {
					shortest = min(shortest, float64(t.Times[g][chosen[k]]))
				}
				sum += math.Log(shortest) / DefaultSamples
			}
		}
		if sum < least-1e-12 {
			least, best = sum, width
		}
	}
	t.Width = best
}

// validate reports a fault of trials read from a file.
func (t *trials) validate() error {
	n := len(t.Times)
	if len(t.Graphs) != n || len(t.Families) != n || t.Cuts != nil && len(t.Cuts) != n || !(t.Width >= 0) {
		return fmt.Errorf("trials: %d graphs, %d families, %d cuts, %d rows of times, width %g", len(t.Graphs), len(t.Families), len(t.Cuts), n, t.Width)
	}
	for g := range n {
		if len(t.Graphs[g]) != 2*numUnitFeatures || len(t.Times[g]) != len(allProposals) {
			return fmt.Errorf("trials: graph %d has %d figures and %d times, want %d and %d", g, len(t.Graphs[g]), len(t.Times[g]), 2*numUnitFeatures, len(allProposals))
		}
		for c, x := range t.Times[g] {
			if !(x > 0) {
				return fmt.Errorf("trials: graph %d, proposal %d: time %g", g, c, x)
			}
		}
	}
	return nil
}

// firstJudged is the number of a family's first graph on which proposals are judged:
// training does not come that far.
const firstJudged = 1 << 20

// try tries all proposals of the run's policy on graphs of its families.
func (t *pretraining) try(ctx context.Context, p *Policy) (trials, error) {
	all, out := allProposals, trials{}
	for _, f := range t.families {
		for i := range t.c.Judged {
			x, err := t.newExample(ctx, f, firstJudged+i)
			if err != nil {
				return trials{}, err
			}
			w, err := NewFeatures(x.problem)
			if err != nil {
				return trials{}, err
			}
			made := p.rollOut(ctx, w, all)
			if w.judge(ctx, made) < len(all) {
				return trials{}, ctx.Err()
			}
			row := make([]float32, len(all))
			for c, y := range made {
				row[c] = float32(math.Round(1e4*relative(y.Score, w.instance(y.level), x.expert)) / 1e4)
			}
			out.Families, out.Graphs, out.Times = append(out.Families, f.Name), append(out.Graphs, p.training.standard(w.summary())), append(out.Times, row)
			out.Cuts, out.works = append(out.Cuts, math.Round(1e4*w.cut())/1e4), append(out.works, p.work(w))
		}
	}
	out.read()
	if len(out.Times) > 0 {
		out.fit()
	}
	out.works = nil
	return out, nil
}

// Propose tries all proposals anew, on graphs of the families that c trains on, which
// must be those that p was trained on. expert places what times are relative to. Where there
// is an error, ctx's among them, p is as it was.
func (p *Policy) Propose(ctx context.Context, c PretrainConfig, expert plan.Placer) error {
	c.Policy = p.config
	t, err := newPretraining(c, nil)
	if err != nil {
		return err
	}
	t.host.Expert = expert
	tried, err := t.try(ctx, p)
	if err == nil {
		p.tried = tried
	}
	return err
}
