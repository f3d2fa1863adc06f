package goone

import (
	"context"
	"math/rand/v2"
	"slices"

	"placer/nn"
	"placer/nn/gonet"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/rollout"
	"placer/plan"
	"placer/ppo"
)

// trainer is a policy at work on one problem. It implements ppo.Env.
type trainer struct {
	*Policy
	ctx     context.Context
	run     *rollout.Run
	decoder *rollout.Decoder
	backend *nn.Backend
	random  *rand.Rand
	source  *rand.PCG // of random
	seconds []float64 // [N] op times
	samples int       // of a round
	resumed bool      // the network is a checkpoint's and has not been trained since
	notes   []string
}

// learn trains on the stages of the curricula.
func (t *trainer) learn() error {
	p := t.run.Problem
	all := curriculum.Curricula(p.Graph, p.Units, t.config.Level, t.seconds, p.Machine.NumDevices())
	if !p.Decides(plan.Place) {
		all = all[:1] // the others are other ways to cut a graph into places
	}
	if !t.config.Curriculum {
		finest := all[0][len(all[0])-1:]
		all = [][]curriculum.Stage{finest}
	}
	walk := curriculum.Walk{Curricula: all, At: &t.at, Run: t.run, Train: t.train}
	if t.resumed {
		return walk.Resume()
	}
	return walk.Begin()
}

// train is as curriculum.Train says. It ends with the cause when the context does.
func (t *trainer) train(leg curriculum.Leg) (curriculum.Logits, error) {
	if err := context.Cause(t.ctx); err != nil {
		return nil, err
	}
	t.decoder.On(leg.Units, leg.OneFusion)
	batch, err := t.batch(leg.Stage)
	if err != nil {
		return nil, err
	}
	if err := t.start(batch, leg.Stage, leg.From); err != nil {
		return nil, err
	}
	if err := t.rounds(batch, leg); err != nil {
		return nil, err
	}
	if err := context.Cause(t.ctx); err != nil {
		return nil, err
	}
	logits, err := t.logits(batch)
	if t.config.InstanceRate > 0 {
		t.network.RemoveInstanceLogits(leg.Name)
	}
	return logits, err
}

// rounds runs rounds of PPO on batch, the units of leg, until its share of the budget is
// spent. Entropy bonus and learning rate fall with what is left of it.
func (t *trainer) rounds(batch *gonet.Batch, leg curriculum.Leg) error {
	config := t.config.ppo(t.samples, len(t.decoder.Heads()))
	trainer := ppo.NewTrainer(config, t, t.network.On(batch), t.random)
	if t.decoder.Tasks.Has(plan.Fuse) {
		trainer.Credit = func(_ [][]int32, _ []float32, perChoice [][]float32) {
			for _, a := range perChoice {
				t.decoder.ClearIdle(a)
			}
		}
	}
	// A first round there is even where preparing took the share of all stages.
	for !t.run.Done(t.ctx) && (t.run.Spent() < leg.End || t.run.Best == nil) {
		t.at.Spent, t.at.Round = t.run.Spent(), t.run.Round
		left := max(0, (leg.End-t.at.Spent)/(leg.End-leg.Begin))
		trainer.SetEntropy(config.Entropy * left)
		if _, err := trainer.Round(func(int) float64 { return t.config.LearningRate * (0.1 + 0.9*left) }); err != nil {
			return err
		}
		t.trained++
	}
	return nil
}

// Rewards is as ppo.Env says.
func (t *trainer) Rewards(actions [][]int32, rewards []float32) error {
	if err := t.run.Evaluate(t.ctx, actions); err != nil {
		return err
	}
	baseline := 0.0 // the serial sum on the first device
	for _, x := range t.seconds {
		baseline += x
	}
	for k, s := range t.run.Scores {
		rewards[k] = ppo.InvalidReward
		if s.Feasible() {
			rewards[k] = ppo.Reward(s.Value, baseline)
		}
	}
	clipInfeasible(rewards, t.run.Scores, float32(t.run.Problem.Machine.Devices[0].Memory))
	return nil
}

// clipInfeasible keeps infeasible samples from drowning the differences between the
// feasible ones of a round once rewards are standardised: below the worst
// feasible one by the feasible ones' range, or ordered by overflow, in parts of
// capacity bytes, where none fits.
func clipInfeasible(rewards []float32, scores []plan.Score, capacity float32) {
	var feasible []float32
	for k, s := range scores {
		if s.Feasible() {
			feasible = append(feasible, rewards[k])
		}
	}
	if len(feasible) == len(rewards) {
		return
	}
	if len(feasible) == 0 {
		for k, s := range scores {
			rewards[k] = ppo.InvalidReward - float32(s.Overflow)/capacity
		}
		return
	}
	low, high := slices.Min(feasible), slices.Max(feasible)
	for k, s := range scores {
		if !s.Feasible() {
			rewards[k] = max(ppo.InvalidReward, low-(high-low)-1e-3)
		}
	}
}

// logits returns the logits of every task.
func (t *trainer) logits(batch *gonet.Batch) (curriculum.Logits, error) {
	out, err := t.network.Forward(batch)
	if err != nil {
		return nil, err
	}
	all := make(curriculum.Logits, len(out.Tasks))
	for i, x := range out.Tasks {
		columns := len(x.V) / batch.X.N
		for u := range batch.X.N {
			all[i] = append(all[i], slices.Clone(x.V[u*columns:(u+1)*columns]))
		}
	}
	return all, nil
}
