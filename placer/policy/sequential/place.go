package sequential

import (
	"context"
	"fmt"

	"placer/plan"
)

// Placer places with a pretrained policy as it is: forward passes, and an
// evaluation of each sample to choose among them.
type Placer struct {
	Policy *Policy
	// Sparing declines a budget in seconds that the rollouts would exceed.
	Sparing bool
}

var _ plan.Placer = Placer{}

// Name returns "zero-shot".
func (Placer) Name() string { return "zero-shot" }

// Kind returns plan.Policy.
func (Placer) Kind() plan.Kind { return plan.Policy }

// Place returns the best of DefaultSamples samples, or of as many as p's budget has
// evaluations.
func (z Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	f, err := NewFeatures(p)
	if err != nil {
		return nil, err
	}
	if b, need := p.Budget.Seconds, defaultZeroShot().seconds(f); z.Sparing && b > 0 && need > b {
		return nil, fmt.Errorf("%s: needs about %.1f s, has %.1f s", z.Name(), need, b)
	}
	samples, err := z.Policy.ZeroShot(ctx, f, samplesWithin(p.Budget))
	if err != nil {
		return nil, err
	}
	best := Best(samples)
	o := &plan.Outcome{Decision: best.Decision, Score: best.Score, Evaluations: len(samples)}
	if p.Report != nil {
		p.Report(plan.Progress{Method: z.Name(), Evaluations: o.Evaluations, Best: o.Score, Decision: o.Decision})
	}
	if note := f.Note(); note != "" {
		o.Notes = append(o.Notes, note)
	}
	if d := z.Policy.Distance(f); d > z.Policy.Limit() {
		o.Notes = append(o.Notes, fmt.Sprintf("the graph is out of the pretrained policy's distribution: distance %.2f from the nearest training graph, measured up to %.2f", d, z.Policy.Limit()))
	}
	return o, nil
}

// samplesWithin returns the number of zero-shot samples within b.
func samplesWithin(b plan.Budget) int {
	if b.Evaluations > 0 {
		return min(DefaultSamples, b.Evaluations)
	}
	return DefaultSamples
}
