package rl2017

import (
	"fmt"
	"math/rand/v2"

	"placer/baselines/learned/reinforce"
	"placer/nn"
	"placer/nn/seq2seq"
	"placer/plan"
	"placer/ppo"
)

// controller samples with its own copy of the parameters and keeps its own
// baseline, which the paper found more stable.
type controller struct {
	server  *server
	params  *nn.Params
	session *seq2seq.Session
	random  *rand.Rand
	signal  *reinforce.Signal

	objective *ppo.Objective
	advantage []float32
	scores    []plan.Score

	end    float64 // of the measurements, on the simulated clock in seconds
	counts bool    // whether there is a gradient to send
}

func newController(s *server, c seq2seq.Config, b *nn.Backend, samples int, r *rand.Rand) (*controller, error) {
	k := &controller{server: s, params: nn.NewParams(), random: r, signal: reinforce.NewSignal(s.config.Signal, s.trials.Serial), advantage: make([]float32, samples), scores: make([]plan.Score, samples)}
	// The weights are overwritten by the server's.
	net := seq2seq.New(c, k.params, rand.New(rand.NewPCG(0, 0)))
	var err error
	if k.session, err = net.Session(b, s.items.N, samples, true); err != nil {
		return nil, err
	}
	k.objective = reinforce.NewObjective(k.advantage, s.items.N, s.config.Entropy)
	return k, nil
}

// begin reads the parameters, samples a placement for each worker, has them
// measured and computes the gradient. It reports false when the budget is spent.
func (k *controller) begin() (bool, error) {
	s := k.server
	for i, p := range s.params.All() {
		copy(k.params.All()[i].Value, p.Value)
	}
	if err := k.session.Sample(s.items, k.random, k.objective.Actions, k.objective.LogProb); err != nil {
		return false, fmt.Errorf("rl-2017: %w", err)
	}
	slowest := 0.0
	for i, a := range k.objective.Actions {
		if s.trials.Done() {
			return false, nil
		}
		k.scores[i] = s.trials.TryUnits(s.groups, func(t int32) int32 { return a[t] })
		if k.scores[i].Feasible() {
			slowest = max(slowest, k.scores[i].Value)
		} else {
			slowest = max(slowest, s.trials.Serial) // to fail takes time too
		}
	}
	k.end += float64(s.config.Measured) * slowest
	k.counts = k.signal.Advantages(k.scores, k.advantage)
	if s.observe != nil {
		r := k.signal.Summary(k.scores)
		r.Evaluations, r.Best = s.trials.Evaluations(), s.trials.Best()
		s.observe(r)
	}
	k.params.ZeroGrad()
	if !k.counts {
		return true, nil
	}
	if _, err := k.session.Backward(s.items, k.objective.Actions, k.objective); err != nil {
		return false, fmt.Errorf("rl-2017: %w", err)
	}
	return true, nil
}
