package gdp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/baselines/learned/reinforce"
	"placer/graph/unit"
	"placer/graphsage"
	"placer/nn"
	"placer/nn/gonet"
	"placer/placer/policy/features"
	"placer/plan"
	"placer/ppo"
)

// Round is what one round of training did.
type Round struct {
	Graph              int // of the problems
	Round, Evaluations int // of this graph
	Seconds            float64
	Fit                int // mean step time of the placements that fit, and their number
	Best               plan.Score
}

// run trains one network on several problems.
type run struct {
	ctx     context.Context
	config  Config
	random  *rand.Rand
	trials  []*trial
	observe func(Round)
}

// trial is a problem in training. It is the trainer's environment.
type trial struct {
	*reinforce.Trials
	name    string
	part    *unit.Partition
	trainer *ppo.Trainer

	scores []plan.Score // of the last round
	rounds int
	spent  bool
}

func newRun(ctx context.Context, name string, c Config, problems []*plan.Problem, observe func(Round)) (*run, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(problems) == 0 {
		return nil, fmt.Errorf("%s: no graph to train on", name)
	}
	r := &run{ctx: ctx, config: c, random: rand.New(rand.NewPCG(problems[0].Seed, 0x9d9)), observe: observe}
	devices := 0
	for _, p := range problems {
		devices = max(devices, p.Machine.NumDevices())
	}
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	network, err := gonet.New(c.network(c.Features.NumColumns(), devices), r.random, backend)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, p := range problems {
		t := &trial{name: name, part: p.Units.Levels[c.Level]}
		if t.Trials, err = reinforce.NewTrials(ctx, p, name); err != nil {
			return nil, err
		}
		training := c.Training
		training.Samples = reinforce.Samples(p, training.Samples)
		t.trainer = ppo.NewTrainer(training, t, network.On(r.input(p, t.part, devices)), r.random)
		r.trials = append(r.trials, t)
	}
	return r, nil
}

// input is what the network reads of the units of part.
func (r *run) input(p *plan.Problem, part *unit.Partition, devices int) *gonet.Batch {
	chain := p.Units.Levels[max(r.config.Level, unit.Chain)]
	table := features.Build(features.Source{Graph: p.Graph, Units: part, Chain: chain, Seconds: p.Evaluator.OpSeconds(0), Machine: p.Machine}, r.config.Features, r.random)
	near := features.Adjacency(p.Graph, part, graphsage.Default(1).MaxNeighbours)
	b := &gonet.Batch{
		X:          nn.Mat{N: part.NumUnits(), D: len(table.Names), V: table.X},
		Neighbours: &graphsage.Neighbours{Start: near.Start, Index: near.Unit},
		Allowed:    make([]bool, devices),
	}
	for d := range p.Machine.NumDevices() {
		b.Allowed[d] = true
	}
	return b
}

// train draws batches until every problem's budget is spent.
func (r *run) train() error {
	for {
		all := r.draw()
		if len(all) == 0 {
			return nil
		}
		if err := r.batch(all); err != nil {
			return err
		}
	}
}

// draw returns the problems of the next batch, in their order, of those that have
// a budget left.
func (r *run) draw() (batch []*trial) {
	var left []*trial
	for _, t := range r.trials {
		if !t.spent {
			left = append(left, t)
		}
	}
	taken := make([]bool, len(left))
	for _, i := range r.random.Perm(len(left))[:min(r.config.Graphs, len(left))] {
		taken[i] = true
	}
	for i, t := range left {
		if taken[i] {
			batch = append(batch, t)
		}
	}
	return batch
}

// batch trains on the problems of a batch in turn for the configured number of
// steps, or until one of them has spent its budget.
func (r *run) batch(batch []*trial) error {
	for range r.config.Steps {
		for _, t := range batch {
			if err := r.step(t); err != nil {
				return err
			}
			if t.spent {
				return nil
			}
		}
	}
	return nil
}

// step runs a round on t.
func (r *run) step(t *trial) error {
	rate := t.Rate(r.config.LearningRate)
	_, err := t.trainer.Round(func(int) float64 { return rate })
	if errors.Is(err, errSpent) {
		t.spent = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	t.rounds++
	if r.observe == nil {
		return nil
	}
	x := Round{Round: t.rounds, Evaluations: t.Evaluations(), Best: t.Best()}
	for i, u := range r.trials {
		if u == t {
			x.Graph = i
		}
	}
	for _, s := range t.scores {
		if s.Feasible() {
			x.Seconds += s.Value
			x.Fit++
		}
	}
	x.Seconds /= float64(max(x.Fit, 1))
	r.observe(x)
	return nil
}

// errSpent ends a round in the middle of its trials.
var errSpent = errors.New("the budget is spent")

// Rewards is as ppo.Env says (GDP, section 4.1).
func (t *trial) Rewards(actions [][]int32, rewards []float32) error {
	t.scores = t.scores[:0]
	for k, a := range actions {
		if t.Done() {
			return errSpent
		}
		s := t.TryUnits(t.part, func(u int32) int32 { return a[u] })
		t.scores = append(t.scores, s)
		rewards[k] = ppo.InvalidReward
		if s.Feasible() {
			rewards[k] = ppo.Reward(s.Value, t.Serial)
		}
	}
	return nil
}
