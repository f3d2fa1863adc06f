package sequential

import (
	"context"
	"math/rand/v2"
	"slices"

	"placer/baselines/budget"
	"placer/plan"
)

// ReinforceTuner places with a pretrained policy whose network goes on learning on the
// graph at hand by PPO, as GO and GDP fine-tune theirs: all weights, GraphSAGE and
// attention among them, in fewer than 50 steps.
type ReinforceTuner struct {
	Policy *Policy // not changed
	Config ReinforceConfig
}

// ReinforceConfig describes the learning.
type ReinforceConfig struct {
	Steps   int // of PPO
	Samples int // placements of a step, each evaluated
	Priors  int // heuristic priors of a step, with as many placements each
	Epochs  int // steps of the gradient in a step
	Rate    float64
	Clip    float64
}

// DefaultReinforce returns 49 steps of 64 placements by the best prior, at ten times the
// rate of pretraining: there is one graph to learn, and soon.
func DefaultReinforce() ReinforceConfig {
	return ReinforceConfig{Steps: 49, Samples: 64, Priors: 1, Epochs: 4, Rate: 1e-2, Clip: 0.2}
}

var _ plan.Placer = ReinforceTuner{}

// Name returns "fine-tuned-ppo".
func (ReinforceTuner) Name() string { return "fine-tuned-ppo" }

// Kind returns plan.Policy.
func (ReinforceTuner) Kind() plan.Kind { return plan.Policy }

// Place makes the policy's proposals, then learns at the level and by the priors of the
// best of them until the steps, or the budget, are done, and returns the best placement
// that was made.
func (t ReinforceTuner) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	f, err := NewFeatures(p)
	if err != nil {
		return nil, err
	}
	track := budget.New(ctx, p, t.Name())
	s, priors := t.begin(f, track)
	policy, err := t.Policy.clone()
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(p.Seed, 0x7070))
	tr, c := newTrainer(policy, random), t.Config
	temperature := slices.Repeat([]float32{1}, c.Samples)
	device := make([]uint8, len(s.part.Of))
	for step := 0; step < c.Steps && s.decisions > 0 && !track.Done(); step++ {
		e := tr.rollouts
		e.on(s)
		e.stopped = track.Done
		e.roll(repeated(priors, c.Samples), passes-1, true, sampler(temperature, random, s.d))
		if track.Done() {
			break
		}
		reward, reference := make([]float32, c.Samples), track.Best().Value
		for i, x := range e.states[:c.Samples] {
			s.place(x.device, device)
			reward[i] = -float32(relative(track.Try(device), s, reference))
			if track.Done() {
				break
			}
		}
		if track.Done() {
			break
		}
		if _, _, err := tr.update(reward, c.Samples/len(priors), c.Epochs, ppo{clip: c.Clip}, c.Rate); err != nil {
			return nil, err
		}
	}
	return track.Outcome()
}

// begin judges the first proposals and returns the instance of the best and the priors of
// the best few at its level.
func (t ReinforceTuner) begin(f *Features, track *budget.Tracker) (*instance, []heuristic) {
	type tried struct {
		Proposal
		Sample
	}
	var all []tried
	proposed := t.Policy.proposed(f, DefaultSamples)
	for i, y := range t.Policy.rollOut(context.Background(), f, proposed) {
		if i > 0 && track.Done() {
			break
		}
		y.Score = track.Try(y.Device)
		all = append(all, tried{proposed[i], y})
	}
	slices.SortStableFunc(all, func(a, b tried) int {
		if a.Score.Better(b.Score) {
			return -1
		}
		if b.Score.Better(a.Score) {
			return 1
		}
		return 0
	})
	var priors []heuristic
	for _, x := range all {
		if h := heuristics()[x.Prior]; x.level == all[0].level && len(priors) < t.Config.Priors && !slices.Contains(priors, h) {
			priors = append(priors, h)
		}
	}
	s := f.instance(all[0].level)
	return s, priors
}

// repeated returns priors, each as often in a row as makes n of them; the last makes up
// for what does not divide.
func repeated(priors []heuristic, n int) (all []heuristic) {
	for i := range n {
		all = append(all, priors[min(len(priors)-1, i/(n/len(priors)))])
	}
	return all
}

// clone returns a policy of equal weights that learns by itself.
func (p *Policy) clone() (*Policy, error) {
	q, err := NewPolicy(p.config, stream(0, "weights", 0))
	if err != nil {
		return nil, err
	}
	for i, w := range p.net.params.All() {
		copy(q.net.params.All()[i].Value, w.Value)
	}
	q.Card, q.training, q.tried, q.usual, q.mute = p.Card, p.training, p.tried, p.usual, p.mute
	return q, nil
}
