package rl2017

import (
	"fmt"
	"math/rand/v2"

	"placer/baselines/learned/reinforce"
	"placer/nn"
	"placer/nn/seq2seq"
	"placer/ppo"
)

// controller samples with its own copy of the parameters and keeps its own
// baseline, which the paper found more stable.
type controller struct {
	server    *server
	params    *nn.Params
	session   *seq2seq.Session
	random    *rand.Rand
	rounds    *reinforce.Rounds
	objective *ppo.Objective

	end    float64 // of the measurements, on the simulated clock in seconds
	counts bool    // whether there is a gradient to send
}

func newController(s *server, c seq2seq.Config, b *nn.Backend, samples int, r *rand.Rand) (*controller, error) {
	k := &controller{server: s, params: nn.NewParams(), random: r, rounds: reinforce.NewRounds(s.trials, s.config.Signal, samples, s.observe)}
	// The weights are overwritten by the server's.
	net := seq2seq.New(c, k.params, rand.New(rand.NewPCG(0, 0)))
	var err error
	if k.session, err = net.Session(b, seq2seq.Shape{Items: s.items.N, Samples: samples, Sequences: 1}); err != nil {
		return nil, err
	}
	k.objective = reinforce.NewObjective(k.rounds.Advantage, s.items.N, s.config.Entropy)
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
	var more bool
	if k.counts, more = k.rounds.Measure(s.groups, func(i int, t int32) int32 { return k.objective.Actions[i][t] }); !more {
		return false, nil
	}
	slowest := 0.0
	for _, x := range k.rounds.Scores {
		if x.Feasible() {
			slowest = max(slowest, x.Value)
		} else {
			slowest = max(slowest, s.trials.Serial) // to fail takes time too
		}
	}
	k.end += float64(s.config.Measured) * slowest
	k.params.ZeroGrad()
	if !k.counts {
		return true, nil
	}
	if _, err := k.session.Backward(s.items, k.objective.Actions, k.objective); err != nil {
		return false, fmt.Errorf("rl-2017: %w", err)
	}
	return true, nil
}
