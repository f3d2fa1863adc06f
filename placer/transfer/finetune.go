package transfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/plan"
)

// TuneConfig describes PPO on one graph from a pretrained policy.
type TuneConfig struct {
	Steps   int     // rounds of samples; the papers take fewer than 50
	Samples int     // placements of a round
	Epochs  int     // steps of Adam on a round
	Rate    float64 // Adam's, for the network
	// FreeRate is Adam's for a logit per unit and device that belongs to this graph
	// alone: logits = network + free (docs/adr/0008).
	FreeRate float64
	Clip     float64
	Entropy  float64
}

// DefaultTune returns 49 rounds of 64.
func DefaultTune() TuneConfig {
	return TuneConfig{Steps: 49, Samples: 64, Epochs: 4, Rate: 1e-3, FreeRate: 0.3, Clip: 0.2, Entropy: 0}
}

// Validate reports every fault.
func (c TuneConfig) Validate() error {
	var errs []error
	if c.Steps < 1 || c.Samples < 2 || c.Epochs < 1 {
		errs = append(errs, fmt.Errorf("finetune: %d steps and %d epochs must be at least 1, %d samples at least 2", c.Steps, c.Epochs, c.Samples))
	}
	if !(c.Rate >= 0) || !(c.FreeRate >= 0) || !(c.Clip > 0) || !(c.Entropy >= 0) {
		errs = append(errs, fmt.Errorf("finetune: learning rates %g and %g and entropy %g must not be negative, clip %g must be positive", c.Rate, c.FreeRate, c.Entropy, c.Clip))
	}
	return errors.Join(errs...)
}

// Tuner places with a pretrained policy that goes on learning on the graph at
// hand by PPO: nothing but sampled placements and their times.
type Tuner struct {
	Policy *Policy // not changed
	Config TuneConfig
	// Observe, if not nil, is told of every step.
	Observe func(step int, o Outcome, best plan.Score) error
	// Tuned, if not nil, is given the policy at the end.
	Tuned func(*Policy)
}

var _ plan.Placer = Tuner{}

// Name returns "fine-tuned".
func (Tuner) Name() string { return "fine-tuned" }

// Kind returns plan.Policy.
func (Tuner) Kind() plan.Kind { return plan.Policy }

// Place samples zero-shot, then alternates between sampling and learning until
// the steps or the budget are spent, and returns the best sample. Each level
// learns for a few steps on its own; the one with the best placement gets the
// rest.
func (t Tuner) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if err := t.Config.Validate(); err != nil {
		return nil, err
	}
	begin := 0.0
	if p.Clock != nil {
		begin = p.Clock()
	}
	w, err := NewView(p)
	if err != nil {
		return nil, err
	}
	samples, err := t.Policy.ZeroShot(ctx, w, Placer{}.within(p.Budget))
	if err != nil {
		return nil, err
	}
	r := &tuning{Tuner: t, problem: p, best: make([]plan.Score, len(levels)), tried: make([]bool, len(levels))}
	for _, x := range samples {
		r.offer(x.level, x.Device, x.Score)
	}
	r.report()
	r.out.Evaluations = len(samples)
	for l := range levels {
		if err := r.open(ctx, w.scenes[l], l, stream(p.Seed, "finetune", uint64(l))); err != nil {
			return nil, err
		}
	}
	c := t.Config
	for k := range c.Steps {
		spent := float64(k) / float64(c.Steps)
		if p.Budget.Seconds > 0 && p.Clock != nil {
			spent = max(spent, (p.Clock()-begin)/p.Budget.Seconds)
		}
		if ctx.Err() != nil || spent >= 1 || p.Budget.Evaluations > 0 && r.out.Evaluations+c.Samples > p.Budget.Evaluations {
			break
		}
		l := k % len(levels)
		if k >= tryout*len(levels) {
			l = r.leader()
		}
		o, err := r.trainers[l].Reinforce(w.scenes[l], c.Samples, c.Epochs, samples[0].baseline(), Objective(c.Clip, c.Entropy), c.Rate*(0.2+0.8*(1-spent)))
		if errors.Is(err, errStopped) {
			break
		}
		if err != nil {
			return nil, err
		}
		if t.Observe != nil {
			if err := t.Observe(k, o, r.out.Score); err != nil {
				return nil, err
			}
		}
		r.report()
	}
	if t.Tuned != nil {
		q := r.trainers[r.leader()].Policy
		q.net.params.Remove("free")
		t.Tuned(q)
	}
	return &r.out, nil
}

// tryout is the number of steps that each level gets before the best one gets
// the rest.
const tryout = 4

// tuning is a Place of a Tuner.
type tuning struct {
	Tuner
	problem  *plan.Problem
	trainers []*Trainer   // [levels]
	best     []plan.Score // [levels]
	tried    []bool       // [levels]
	out      plan.Outcome
}

// offer keeps a placement that level l made if it is the best.
func (r *tuning) offer(l int, device []uint8, score plan.Score) {
	if !r.tried[l] || score.Better(r.best[l]) {
		r.best[l], r.tried[l] = score, true
	}
	if r.out.Device == nil || score.Better(r.out.Score) {
		r.out.Device, r.out.Score = append(r.out.Device[:0], device...), score
	}
}

func (r *tuning) report() {
	if report := r.problem.Report; report != nil {
		report(plan.Progress{Method: r.Name(), Evaluations: r.out.Evaluations, Best: r.out.Score, Device: r.out.Device})
	}
}

// leader returns the level with the best placement, the finest of equals.
func (r *tuning) leader() int {
	leader := 0
	for l := range levels {
		if r.tried[l] && (!r.tried[leader] || r.best[l].Better(r.best[leader])) {
			leader = l
		}
	}
	return leader
}

// open makes the trainer of level l.
func (r *tuning) open(ctx context.Context, s *Scene, l int, random *rand.Rand) error {
	policy, err := r.Policy.Clone()
	if err != nil {
		return err
	}
	t := NewTrainer(policy, random)
	if rate := r.Config.FreeRate; rate > 0 {
		t.pass.free = policy.net.params.Constant("free", 0, s.part.NumUnits(), s.d)
		t.pass.free.Rate = rate / max(r.Config.Rate, 1e-9)
	}
	t.stop = func() bool { return ctx.Err() != nil }
	t.keep = func(device []uint8, score plan.Score) {
		r.out.Evaluations++
		r.offer(l, device, score)
	}
	r.trainers = append(r.trainers, t)
	return nil
}

// baseline is the step time that rewards are relative to.
func (x *Sample) baseline() float64 { return max(x.Score.Seconds, 1e-9) }

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
