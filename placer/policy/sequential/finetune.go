package sequential

import (
	"context"
	"fmt"
	"math"

	"placer/plan"
)

// Tuner places with a pretrained policy that goes on learning on the graph at hand by the
// cross-entropy method (R. Rubinstein, Methodology and Computing in Applied Probability 1,
// 1999): the policy samples, and what is added to its logits moves to where the best of the
// samples become likely.
// Nothing but sampled placements and their times enters; no placement is changed
// by hand.
type Tuner struct {
	Policy *Policy // not changed
	Config TuneConfig
	// Sparing declines a budget in seconds of which the zero-shot samples alone would
	// take half: what comes out would be theirs.
	Sparing bool
	// From, if not nil, is where to go on.
	From *TuneState
	// Observe, if not nil, is told of every step.
	Observe func(t TuneStep, best plan.Score) error
	// Save, if not nil, is given every step's end. It must not keep the state.
	Save func(*TuneState) error

	improvement Improvement // PPOTuner's
}

// TuneStep is what a round came to.
type TuneStep struct {
	Step    int // from 0
	Samples int // that were evaluated
	Level   string
	Mean    float64 // seconds, of all samples
	Best    float64 // seconds, of those that fit, improved ones too; +Inf where none does
	Entropy float64 // mean of a decision, nats
}

var _ plan.Placer = Tuner{}

// Name returns "fine-tuned".
func (Tuner) Name() string { return "fine-tuned" }

// Kind returns plan.Policy.
func (Tuner) Kind() plan.Kind { return plan.Policy }

// Place samples zero-shot, then alternates between sampling and learning until
// the steps are done or ctx ends, and returns the best sample. Rounds are smaller
// where the budget asks for it: a budget in evaluations is divided among the
// steps beforehand, one in seconds as time passes. A step that fails ends the learning; what
// was found before counts, with a note.
func (t Tuner) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	return t.place(ctx, p, t.Name(), crossEntropy{})
}

// place is Place under a name, by l.
func (t Tuner) place(ctx context.Context, p *plan.Problem, name string, l learner) (*plan.Outcome, error) {
	if err := t.Config.Validate(); err != nil {
		return nil, err
	}
	f, err := NewFeatures(p)
	if err != nil {
		return nil, err
	}
	if err := t.declined(f, name); err != nil {
		return nil, err
	}
	if err := l.room(f.instance(atCells)); err != nil {
		return nil, err
	}
	r, err := t.begin(ctx, f, l)
	if err != nil {
		return nil, err
	}
	r.report(name)
	early, err := r.steps(ctx, name)
	if err != nil {
		return nil, err
	}
	d, score := r.found()
	if r.problem != f.problem {
		d, score = r.decideAnew(ctx, d, score)
	}
	o := &plan.Outcome{Decision: d, Score: score, Evaluations: r.state.Evaluations}
	for _, note := range []string{r.note, r.lookedNote(), early} {
		if note != "" {
			o.Notes = append(o.Notes, note)
		}
	}
	return o, nil
}

// declined says why f is not placed within its budget: see Sparing.
func (t Tuner) declined(f *Features, name string) error {
	need := 0.0
	for _, c := range t.zeroShots() {
		need += c.seconds(f)
	}
	if b := f.problem.Budget.Seconds; t.Sparing && b > 0 && need > b/2 {
		return fmt.Errorf("%s: its share of the time, %.1f s, would go into the zero-shot samples that it begins with, about %.0f s", name, b, math.Ceil(need))
	}
	return nil
}

// steps takes the steps that are left until the budget is spent or ctx ends, and says why it
// learned no more where a step failed. The error is Observe's or Save's.
func (r *tuning) steps(ctx context.Context, name string) (early string, err error) {
	const failed = "learning ended early: %v"
	if r.state.Step == 0 && r.improvement.Placements > 0 {
		if err := r.open(ctx); err != nil && ctx.Err() == nil {
			return fmt.Sprintf(failed, err), nil
		}
		r.report(name)
	}
	for r.state.Step < r.Config.Steps && r.features.instance(atCells).decisions > 0 && ctx.Err() == nil {
		k := r.pace.samples(r.state)
		if k < 2 {
			break
		}
		step, err := r.advance(ctx, k)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return fmt.Sprintf(failed, err), nil
		}
		r.report(name)
		if r.Observe != nil {
			_, best := r.found()
			if err := r.Observe(step, best); err != nil {
				return "", err
			}
		}
		if r.Save != nil {
			if err := r.Save(r.snapshot()); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// zeroShots returns how the samples to begin with are made: varied ones, and, where
// placements are improved, those of a zero-shot placement first.
func (t Tuner) zeroShots() []zeroShotConfig {
	if t.improvement.Placements == 0 {
		return []zeroShotConfig{varied()}
	}
	return []zeroShotConfig{defaultZeroShot(), varied()}
}

// report tells of the best so far.
func (r *tuning) report(name string) {
	if report := r.features.problem.Report; report != nil {
		d, score := r.found()
		report(plan.Progress{Method: name, Evaluations: r.state.Evaluations, Best: score, Decision: d})
	}
}
