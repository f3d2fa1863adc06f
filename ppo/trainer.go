package ppo

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"placer/nn"
)

// Env scores decisions.
type Env interface {
	// Rewards writes the reward of decision actions[k], [M], into rewards[k].
	Rewards(actions [][]int32, rewards []float32) error
}

// Policy is a network over the N nodes of one problem. It decides one or more
// tasks; a decision holds M choices, those of one task after those of another.
type Policy interface {
	// Rows returns the number of choices of each task, which add up to M.
	Rows() []int
	// Forward returns the logits of each task, [copies rows, A], and one value per
	// copy, given the decisions before, [copies M], or nil in the first iteration.
	// Both are valid until the next call.
	Forward(copies int, previous []int32) (logits []nn.Mat, values []float32, err error)
	// Backward adds the gradient of an objective over the same outputs: the first
	// task's logits, the values, the other tasks' logits.
	Backward(copies int, previous []int32, o nn.Objective) (float64, error)
	// Update takes a gradient step and returns the gradient's norm.
	Update(learningRate float64) (float64, error)
}

// Round is what one round of training did.
type Round struct {
	Actions [][]int32 // [K][M], the decisions of the last iteration
	Rewards []float32 // [K]
	Values  []float32 // [K], as predicted before the round's updates
	// Stats are those of the last minibatch, summed over iterations.
	Stats        Stats
	GradientNorm float64 // of the last update, before clipping
	Updates      int
}

// Trainer runs PPO for one problem. Trainers of several problems may share a
// network.
type Trainer struct {
	config Config
	env    Env
	policy Policy
	random *rand.Rand
	// Credit, if set, changes the advantages of the choices of every task, [K][M],
	// which hold what they are without it; advantage are those of the samples, [K].
	Credit func(actions [][]int32, advantage []float32, perChoice [][]float32)

	sum    float64 // of all rewards, for AverageReward
	trials int
}

// NewTrainer returns a trainer. It panics if c is not valid.
func NewTrainer(c Config, env Env, policy Policy, r *rand.Rand) *Trainer {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return &Trainer{config: c, env: env, policy: policy, random: r}
}

// SetEntropy changes the factor of the entropy bonus for the rounds to come.
func (t *Trainer) SetEntropy(e float64) { t.config.Entropy = e }

// iteration is what refinement iteration t saw and chose.
type iteration struct {
	previous []int32     // [KM], nil in the first
	actions  [][]int32   // [K][M]
	logProb  [][]float32 // [K][M]
}

// Round samples K decisions, has them scored, and takes Epochs x Minibatches
// gradient steps; rate gives the learning rate of the round's update i.
func (t *Trainer) Round(rate func(i int) float64) (*Round, error) {
	c := t.config
	// Sample K decisions with the policy as it is.
	iterations, values, err := t.rollout()
	if err != nil {
		return nil, err
	}
	r := &Round{Actions: iterations[len(iterations)-1].actions, Rewards: make([]float32, c.Samples), Values: values}
	// Score them.
	if err := t.env.Rewards(r.Actions, r.Rewards); err != nil {
		return nil, fmt.Errorf("ppo: %w", err)
	}
	// Compute advantages.
	advantage := t.advantages(r)
	// Optimise the clipped objective.
	order := t.random.Perm(c.Samples)
	for range c.Epochs {
		for m := range c.Minibatches {
			part := order[m*c.Samples/c.Minibatches : (m+1)*c.Samples/c.Minibatches]
			r.Stats = Stats{}
			for _, it := range iterations {
				s, err := t.backward(it, part, advantage, r.Rewards)
				if err != nil {
					return nil, err
				}
				r.Stats.add(s)
			}
			if r.GradientNorm, err = t.policy.Update(rate(r.Updates)); err != nil {
				return nil, fmt.Errorf("ppo: update %d: %w", r.Updates, err)
			}
			r.Updates++
		}
		t.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return r, nil
}

// rollout samples K decisions through T iterations, each given the one before.
func (t *Trainer) rollout() ([]iteration, []float32, error) {
	k := t.config.Samples
	var all []iteration
	var values []float32
	for i := range t.config.Iterations {
		it := iteration{}
		copies := 1
		if i > 0 {
			it.previous = slices.Concat(all[i-1].actions...)
			copies = k
		}
		logits, v, err := t.policy.Forward(copies, it.previous)
		if err != nil {
			return nil, nil, fmt.Errorf("ppo: sampling: %w", err)
		}
		if i == 0 {
			values = slices.Repeat(v[:1], k)
		}
		for j := range k {
			t.sample(&it, j, copies, logits)
		}
		all = append(all, it)
	}
	return all, values, nil
}

// sample draws decision j of an iteration from logits, of one copy or one for each decision.
// Decisions of a group share the choices of the first task.
func (t *Trainer) sample(it *iteration, j, copies int, logits []nn.Mat) {
	rows := t.policy.Rows()
	a, l := make([]int32, sum(rows)), make([]float32, sum(rows))
	at := 0
	for h, n := range rows {
		x := logits[h]
		if copies > 1 {
			x = x.Rows(j*n, (j+1)*n)
		}
		if first := j - j%max(t.config.Group, 1); h == 0 && first < j {
			copy(a[:n], it.actions[first][:n])
			copy(l[:n], it.logProb[first][:n])
		} else {
			Sample(x, 1, t.random, a[at:at+n], l[at:at+n])
		}
		at += n
	}
	it.actions, it.logProb = append(it.actions, a), append(it.logProb, l)
}

func sum(x []int) (s int) {
	for _, v := range x {
		s += v
	}
	return s
}

// advantages returns [K][1], or [K][M] with Credit or groups.
func (t *Trainer) advantages(r *Round) [][]float32 {
	a := t.sampleAdvantages(r)
	all := make([][]float32, len(a))
	for i := range all {
		all[i] = a[i : i+1]
	}
	if t.Credit == nil && t.config.Group <= 1 {
		return all
	}
	first, rest := a, a
	if t.config.Group > 1 {
		first, rest = groupAdvantages(r.Rewards, t.config.Group)
	}
	n := t.policy.Rows()[0]
	for i := range all {
		all[i] = make([]float32, len(r.Actions[i]))
		for j := range all[i] {
			if all[i][j] = rest[i]; j < n {
				all[i][j] = first[i]
			}
		}
	}
	if t.Credit != nil {
		t.Credit(r.Actions, a, all)
	}
	return all
}

// sampleAdvantages returns the advantage of each sample over the baseline, [K].
func (t *Trainer) sampleAdvantages(r *Round) []float32 {
	a := make([]float32, len(r.Rewards))
	switch t.config.Baseline {
	case Standardised:
		Standardise(a, r.Rewards)
	case LearnedValue:
		for i, x := range r.Rewards {
			a[i] = x - r.Values[i]
		}
	case AverageReward:
		if t.trials > 0 { // the first round has no earlier trial: it only fills the average
			for i, x := range r.Rewards {
				a[i] = x - float32(t.sum/float64(t.trials))
			}
		}
		for _, x := range r.Rewards {
			t.sum += float64(x)
		}
		t.trials += len(r.Rewards)
	}
	return a
}

// backward adds the gradient of the samples part of one iteration.
func (t *Trainer) backward(it iteration, part []int, advantage [][]float32, rewards []float32) (Stats, error) {
	o := &Objective{ClipEps: t.config.ClipEps, Entropy: t.config.Entropy}
	var previous []int32
	copies, n := 1, len(it.actions[0])
	for _, k := range part {
		o.Actions = append(o.Actions, it.actions[k])
		o.LogProb = append(o.LogProb, it.logProb[k])
		o.Advantage = append(o.Advantage, advantage[k])
		if it.previous != nil {
			previous = append(previous, it.previous[k*n:(k+1)*n]...)
		}
		o.Return = append(o.Return, rewards[k])
	}
	if it.previous != nil {
		copies = len(part)
	} else if t.config.Baseline == LearnedValue {
		// The value of the problem, before any decision. With another baseline its
		// error would only take up the gradient's norm.
		o.ValueCost = t.config.ValueCost
	}
	if _, err := t.policy.Backward(copies, previous, o); err != nil {
		return Stats{}, fmt.Errorf("ppo: gradient: %w", err)
	}
	return o.Stats, nil
}

func (s *Stats) add(o Stats) {
	s.Loss += o.Loss
	s.Entropy += o.Entropy
	s.KL1 += o.KL1
	s.KL3 += o.KL3
	s.ClipFraction += o.ClipFraction
	s.ValueLoss += o.ValueLoss
}
