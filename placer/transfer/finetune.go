package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"

	"placer/plan"
)

// TuneConfig describes learning on one graph from a pretrained policy.
type TuneConfig struct {
	Steps   int `json:"steps"`   // rounds of samples; the papers take fewer than 50
	Samples int `json:"samples"` // placements judged in a round on four devices; 0 chooses by the size of the graph
	Drafts  int `json:"drafts"`  // placements made for each that is judged
	Elite   int `json:"elite"`   // placements that a late round learns from
	Fits    int `json:"fits"`    // steps of the gradient on a round
	// Rate is that of a logit per unit and device that belongs to this graph alone,
	// LinkRate that of a weight per unit and link (see links).
	Rate     float64 `json:"rate"`
	LinkRate float64 `json:"link_rate"`
	// Pushed is the share of samples in which units that belong together are drawn to
	// a device as a whole, by adding Push to their logits.
	Pushed float64 `json:"pushed"`
	Push   float64 `json:"push"`
	// Temperatures are drawn between Coolest and Hottest, which falls to 1.
	Coolest float64 `json:"coolest"`
	Hottest float64 `json:"hottest"`
	// Workers is the number of goroutines that sample and evaluate; what comes out
	// does not depend on it.
	Workers int `json:"-"`
}

// DefaultTune returns 49 rounds.
func DefaultTune() TuneConfig {
	return TuneConfig{Steps: 49, Drafts: 2, Elite: 32, Fits: 15, Rate: 1, LinkRate: 0.3, Pushed: 0.5, Push: 10, Coolest: 0.7, Hottest: 2, Workers: 1}
}

// Validate reports every fault.
func (c TuneConfig) Validate() error {
	var errs []error
	if c.Steps < 1 || c.Samples < 0 || c.Samples == 1 {
		errs = append(errs, fmt.Errorf("finetune: %d steps of %d samples, want at least 1 of at least 2, or 0 samples to choose by the graph", c.Steps, c.Samples))
	}
	if c.Drafts < 1 || c.Elite < 1 || c.Fits < 1 || c.Workers < 1 {
		errs = append(errs, fmt.Errorf("finetune: drafts %d, elite %d, fits %d and workers %d must be at least 1", c.Drafts, c.Elite, c.Fits, c.Workers))
	}
	if !(c.Rate >= 0) || !(c.LinkRate >= 0) || !(c.Push >= 0) {
		errs = append(errs, fmt.Errorf("finetune: rates %g and %g and push %g must not be negative", c.Rate, c.LinkRate, c.Push))
	}
	if !(c.Coolest > 0) || !(c.Coolest <= 1) || !(c.Hottest >= 1) {
		errs = append(errs, fmt.Errorf("finetune: temperatures from %g to %g, want more than 0 and around 1", c.Coolest, c.Hottest))
	}
	if !(c.Pushed >= 0) || !(c.Pushed <= 1) {
		errs = append(errs, fmt.Errorf("finetune: share %g of pushed samples, want 0 to 1", c.Pushed))
	}
	return errors.Join(errs...)
}

// rounds are the sizes of the steps on a graph and a machine.
type rounds struct {
	steps, base   int
	early, late   int // judged
	drafts, elite int
	fits          int
	rate          float64
	opening       int // steps of the gradient with which a level begins
}

// rounds returns those on a graph of n ops in units units and d devices: more
// devices take more samples early on, when the most is to be learned, and many
// logits larger rounds and steps, or the last round comes before they have settled.
func (c TuneConfig) rounds(n, units, d int) rounds {
	x := rounds{steps: c.Steps, base: c.Samples, drafts: c.Drafts, elite: c.Elite, fits: c.Fits, rate: c.Rate}
	many := units*d > manyLogits
	x.opening = openingFits
	if many {
		x.fits *= 2
		x.rate *= 2
		if n > largeGraph {
			x.opening *= 6
		}
	}
	if x.base == 0 {
		x.base = samples(n, many, d)
	}
	x.early = max(2, x.base*min(d, 8)/4)
	x.late = max(x.base, x.early)
	return x
}

// samples returns the placements judged in a round on four devices where nothing
// else is asked for, on a graph of n ops and a machine of d devices: what a minute
// on two cores has room for, and on large graphs and for many logits five minutes.
func samples(n int, many bool, d int) int {
	switch {
	case n > largeGraph:
		return max(128, 2048/min(d, 8)*hugeGraph/max(n, hugeGraph))
	case n > smallGraph && many:
		return 1024
	}
	return 256
}

// isEarly reports whether step k is one of the first half.
func (x rounds) isEarly(k int) bool { return 2*k <= x.steps }

// judged returns the placements that step k judges. The first has as many as a
// late one, for it is divided among the levels.
func (x rounds) judged(k int) int {
	if k > 0 && x.isEarly(k) {
		return x.early
	}
	return x.late
}

// made returns the placements that step k makes at level l for each that it
// judges. The policy's own schedule orders wide samples of cells well, those of
// coarser levels less well.
func (x rounds) made(k, l int) int {
	switch {
	case l > 0:
		return x.drafts
	case x.isEarly(k):
		return max(1, x.drafts*x.base/x.early)
	}
	return max(1, x.drafts*x.base/x.late)
}

// learned returns the placements that step k learns from.
func (x rounds) learned(k int) int {
	if x.isEarly(k) {
		return max(1, x.elite*min(x.early, x.base)/x.base)
	}
	return x.elite
}

// Numbers of ops above which rounds are of other sizes. An evaluation takes tens of
// milliseconds on large graphs.
const (
	smallGraph = 10_000
	largeGraph = 40_000
	hugeGraph  = 100_000
)

// manyLogits is the number of logits of cells above which rounds learn faster and
// from more samples: trfxl8 has 7,752, gnmt8 18,800, the other rows of GO's table 2
// at most 5,528 (adr/0021, adr/0022).
const manyLogits = 6000

// shares of the steps, by level: the finest has the rest.
var shares = []float64{1: 0.17, 2: 0.08, timeStep: 0.35}

// level returns the level of step k of a run that began with level start: from
// coarse to fine, and from time steps, which no layer's segments are made of, to
// cells.
func (c TuneConfig) level(k, start int) int {
	k-- // the first step is that of every level
	for l := start; l > 0; l-- {
		n := int(shares[l]*float64(c.Steps) + 0.5)
		if k < n {
			return l
		}
		if k -= n; l == timeStep {
			break
		}
	}
	return 0
}

// within reports whether level l's placements are some of level start's.
func within(l, start int) bool {
	return l == start || start == 0 || l > start && l != timeStep && start != timeStep
}

// TuneStep is what a round came to.
type TuneStep struct {
	Step, Samples int
	Level         string
	Mean, Best    float64 // seconds, of the round
	Entropy       float64 // mean of a decision, nats
}

// Tuner places with a pretrained policy that goes on learning on the graph at
// hand by the cross-entropy method (Rubinstein): the policy samples, and what is
// added to its logits moves to where the best of the samples become likely.
// Nothing but sampled placements and their times enters; no placement is changed
// by hand.
type Tuner struct {
	Policy *Policy // not changed
	Config TuneConfig
	// Sparing refuses a budget in seconds of which the zero-shot samples alone would
	// take half: what comes out would be theirs.
	Sparing bool
	// From, if not nil, is where to go on.
	From *TuneState
	// Observe, if not nil, is told of every step.
	Observe func(t TuneStep, best plan.Score) error
	// Save, if not nil, is given every step's end. It must not keep the state.
	Save func(*TuneState) error
}

var _ plan.Placer = Tuner{}

// Name returns "fine-tuned".
func (Tuner) Name() string { return "fine-tuned" }

// Kind returns plan.Policy.
func (Tuner) Kind() plan.Kind { return plan.Policy }

// Place samples zero-shot, then alternates between sampling and learning until
// the steps are done or ctx ends, and returns the best sample. Rounds are smaller
// where the budget asks for it: a budget in evaluations is divided among the
// steps beforehand, one in seconds as time passes.
func (t Tuner) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if err := t.Config.Validate(); err != nil {
		return nil, err
	}
	w, err := NewView(p)
	if err != nil {
		return nil, err
	}
	if b, need := p.Budget.Seconds, w.takes(); t.Sparing && b > 0 && need > b/2 {
		return nil, fmt.Errorf("%s: its share of the time, %.1f s, would go into the zero-shot samples that it begins with, about %.0f s", t.Name(), b, math.Ceil(need))
	}
	r, err := t.begin(ctx, w)
	if err != nil {
		return nil, err
	}
	r.report()
	for r.state.Step < t.Config.Steps && w.scenes[0].turns > 0 && ctx.Err() == nil {
		k := r.pace.samples(r.state)
		if k < 2 {
			break
		}
		step, err := r.advance(ctx, k)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		r.report()
		if t.Observe != nil {
			if err := t.Observe(step, r.state.score()); err != nil {
				return nil, err
			}
		}
		if t.Save != nil {
			if err := t.Save(r.snapshot()); err != nil {
				return nil, err
			}
		}
	}
	return &plan.Outcome{Device: r.devices(r.state.Best.Cells), Score: r.state.score(), Evaluations: r.state.Evaluations}, nil
}

// pace says how many samples a round has.
type pace struct {
	clock   func() float64
	begin   float64
	spent   float64 // seconds before begin
	budget  plan.Budget
	rounds  rounds
	from    int     // samples before the first step of this run
	started float64 // seconds from begin to the first step
}

// samples returns those of the step that s comes to.
func (x *pace) samples(s *TuneState) int {
	k, left := x.rounds.judged(s.Step), 0 // left are the samples planned from here on
	for step := s.Step; step < x.rounds.steps; step++ {
		left += x.rounds.judged(step)
	}
	if n := x.budget.Evaluations; n > 0 {
		// Few are better spent on few steps than on steps of one or two.
		k = min(k, n-s.Evaluations, max(fewest, (n-s.Evaluations)*k/left))
	}
	if total := x.budget.Seconds; total > 0 && x.clock != nil {
		now := x.clock() - x.begin
		if now+x.spent >= total {
			return 0
		}
		if done := s.Evaluations - x.from; done > 0 {
			// Finer levels cost more than what was measured at coarse ones; the
			// division is made anew at each step.
			each := (now - x.started) / float64(done)
			k = min(k, max(fewest, int((total-x.spent-now)*float64(k)/float64(left)/each)))
		} else {
			x.started = now
			k = min(k, probe)
		}
	}
	return k
}

const (
	fewest = 16 // samples of a round that time is short for
	probe  = 64 // samples of the round that speed is measured by
)

// report tells of the best so far.
func (r *tuning) report() {
	if report := r.view.problem.Report; report != nil {
		report(plan.Progress{Method: r.Name(), Evaluations: r.state.Evaluations, Best: r.state.score(), Device: r.devices(r.state.Best.Cells)})
	}
}

// Clone returns a policy with weights of its own.
func (p *Policy) Clone() (*Policy, error) {
	q, err := NewPolicy(p.config, stream(0, "weights", 0))
	if err != nil {
		return nil, err
	}
	q.Card, q.Reach = p.Card, p.Reach
	for i, w := range p.net.params.All() {
		copy(q.net.params.All()[i].Value, w.Value)
	}
	return q, nil
}
