package transfer

import (
	"context"
	"errors"
	"fmt"

	"placer/plan"
)

// TuneConfig describes learning on one graph from a pretrained policy.
type TuneConfig struct {
	Steps   int `json:"steps"`   // rounds of samples; the papers take fewer than 50
	Samples int `json:"samples"` // placements of a round; 0 chooses by the size of the graph
	Elite   int `json:"elite"`   // placements that a round learns from
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
	return TuneConfig{Steps: 49, Elite: 32, Fits: 15, Rate: 1, LinkRate: 0.3, Pushed: 0.5, Push: 10, Coolest: 0.7, Hottest: 2, Workers: 1}
}

// Validate reports every fault.
func (c TuneConfig) Validate() error {
	var errs []error
	if c.Steps < 1 || c.Samples < 0 || c.Samples == 1 {
		errs = append(errs, fmt.Errorf("finetune: %d steps of %d samples, want at least 1 of at least 2, or 0 samples to choose by the graph", c.Steps, c.Samples))
	}
	if c.Elite < 1 || c.Fits < 1 || c.Workers < 1 {
		errs = append(errs, fmt.Errorf("finetune: elite %d, fits %d and workers %d must be at least 1", c.Elite, c.Fits, c.Workers))
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

// samples returns the placements of a round on a graph of n ops.
func (c TuneConfig) samples(n int) int {
	switch {
	case c.Samples > 0:
		return c.Samples
	case n <= largeGraph:
		return 512
	}
	return 256
}

// largeGraph is the number of ops from which a round has fewer samples: an
// evaluation takes tens of milliseconds there.
const largeGraph = 40000

// The shares of the steps that decide by chains and by segments; the rest decides
// by cells.
const (
	chainShare   = 0.08
	segmentShare = 0.17
)

// level returns the level of step k: from coarse to fine.
func (c TuneConfig) level(k int) int {
	chains := int(chainShare*float64(c.Steps) + 0.5)
	segments := int(segmentShare*float64(c.Steps) + 0.5)
	switch {
	case k < chains:
		return 2
	case k < chains+segments:
		return 1
	}
	return 0
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
	steps   int
	most    int
	from    int     // samples before the first step of this run
	started float64 // seconds from begin to the first step
}

// samples returns those of the step that s comes to.
func (x *pace) samples(s *TuneState) int {
	left := x.steps - s.Step
	k := x.most
	if n := x.budget.Evaluations; n > 0 {
		k = min(k, (n-s.Evaluations)/left)
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
			k = min(k, max(fewest, int((total-x.spent-now)/float64(left)/each)))
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
