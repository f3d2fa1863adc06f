package hdp

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/learned/reinforce"
	"placer/graph/unit"
	"placer/nn"
	"placer/nn/seq2seq"
	"placer/plan"
	"placer/ppo"
)

// Placer trains a grouper and a placer from nothing on the graph that it places.
type Placer struct {
	Config Config
	// Observe, if not nil, is told of every round.
	Observe func(reinforce.Round)
}

var _ plan.Placer = Placer{}

// Name returns "hdp".
func (Placer) Name() string { return "hdp" }

// Kind returns plan.Policy.
func (Placer) Kind() plan.Kind { return plan.Policy }

// Place trains until the budget is spent and returns the best placement that was
// sampled.
func (h Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if err := h.Config.Validate(); err != nil {
		return nil, err
	}
	trials, err := reinforce.NewTrials(ctx, p, h.Name())
	if err != nil {
		return nil, err
	}
	t, err := h.training(p, trials)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name(), err)
	}
	for more := true; more; {
		if more, err = t.round(); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name(), err)
		}
	}
	return trials.Outcome()
}

// training is the state of a run. Entities are units of the
// configured level: at the op level ops, or co-location groups of them.
type training struct {
	config   Config
	trials   *reinforce.Trials
	random   *rand.Rand
	rounds   *reinforce.Rounds
	entities *unit.Partition
	embedder *reinforce.Embedder

	params  *nn.Params
	adam    *nn.Adam
	grouper *grouper
	session *seq2seq.Session

	items    nn.Mat // [KT,F] of the samples' groups
	grouping *ppo.Objective
	placing  *ppo.Objective
}

func (h Placer) training(p *plan.Problem, trials *reinforce.Trials) (*training, error) {
	c := h.Config
	k := reinforce.Samples(p, c.Samples)
	t := &training{config: c, trials: trials, random: rand.New(rand.NewPCG(p.Seed, 0x2018)), entities: p.Units.Levels[c.Level],
		params: nn.NewParams(), adam: nn.NewAdam(nn.DefaultAdam()), rounds: reinforce.NewRounds(trials, c.Signal, k, h.Observe)}
	t.embedder = reinforce.NewEmbedder(p.Graph, t.entities)
	devices, n := p.Machine.NumDevices(), t.entities.NumUnits()
	groups := c.groups(n, devices)
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	if t.grouper, err = newGrouper(c, t.params, t.random, backend, describe(p.Graph, t.entities, t.embedder.Edges()), groups); err != nil {
		return nil, err
	}
	columns := t.embedder.Columns(groups)
	net := seq2seq.New(seq2seq.Config{Features: columns, Width: c.Width, Choices: devices, Aligned: c.Aligned}, t.params, t.random)
	if t.session, err = net.Session(backend, seq2seq.Shape{Items: groups, Samples: k, Sequences: k}); err != nil {
		return nil, err
	}
	t.items = nn.NewMat(k*groups, columns)
	t.grouping, t.placing = reinforce.NewObjective(t.rounds.Advantage, n, c.Entropy), reinforce.NewObjective(t.rounds.Advantage, groups, c.Entropy)
	return t, nil
}

// round samples groups and their devices, has the placements measured and takes a
// step. It reports false when the budget is spent.
func (t *training) round() (bool, error) {
	// Sample groups, and then devices for them.
	if err := t.grouper.sample(t.random, t.grouping.Actions, t.grouping.LogProb); err != nil {
		return false, err
	}
	n := t.grouper.groups
	for k, groups := range t.grouping.Actions {
		t.embedder.Embed(groups, t.items.Rows(k*n, (k+1)*n))
	}
	if err := t.session.Sample(t.items, t.random, t.placing.Actions, t.placing.LogProb); err != nil {
		return false, err
	}
	// Measure the placements.
	counts, more := t.rounds.Measure(t.entities, func(k int, u int32) int32 { return t.placing.Actions[k][t.grouping.Actions[k][u]] })
	if !counts {
		return more, nil
	}
	// Train both policies with the same advantages.
	if _, err := t.grouper.graph.Run(t.grouping); err != nil {
		return false, err
	}
	if _, err := t.session.Backward(t.items, t.placing.Actions, t.placing); err != nil {
		return false, err
	}
	if _, err := t.adam.Step(t.params, t.trials.Rate(t.config.LearningRate)); err != nil {
		return false, err
	}
	return true, nil
}
