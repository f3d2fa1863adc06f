package placer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"placer/features"
	"placer/gonet"
	"placer/graphsage"
	"placer/internal/fsx"
	"placer/nn"
	"placer/plan"
	"placer/ppo"
)

// Policy is GO-one: a policy network trained from scratch by PPO on the graph
// that it plans for, with nothing but sampled plans and their times to learn from
// (GO, section 4; GDP, section 3.4). It decides the tasks of the problem, jointly.
// Where it decides fusion, or placement with another task, it imitates its best
// samples, too, and a placement that the problem has is one of its starts.
type Policy struct {
	config  PolicyConfig
	network *gonet.Network // nil until Place begins
	rounds  int
	device  nn.Device
	near    bool // stay near the placement that the problem has
	at      position
	earlier *plan.Outcome // of the training to go on with; nil for none
	path    string        // its checkpoint
}

// NewPolicy returns an untrained policy.
func NewPolicy(c PolicyConfig) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Policy{config: c}, nil
}

// Use makes the network of the Place calls to come run on d, nil for the CPU.
func (p *Policy) Use(d nn.Device) { p.device = d }

// Name is as plan.Placer says.
func (p *Policy) Name() string { return "GO-one" }

// Kind is as plan.Placer says.
func (p *Policy) Kind() plan.Kind { return plan.Policy }

// Place trains until the budget is spent and returns the best placement that was
// sampled.
func (p *Policy) Place(ctx context.Context, problem *plan.Problem) (_ *plan.Outcome, err error) {
	c := p.config
	if p.device != nil {
		defer func() { err = errors.Join(err, p.leave()) }()
	}
	if d := problem.Machine.NumDevices(); d > c.Devices {
		c.Devices = d
	}
	c = c.forTasks(problem)
	c.Training.Samples = fitSamples(c.Training, problem.Budget.Evaluations)
	env := newEnvironment(problem, c)
	if !env.tasks.Has(plan.Place) && len(problem.Device) != problem.Graph.NumOps() {
		return nil, fmt.Errorf("policy: %v without a placement of the %d ops", env.tasks, problem.Graph.NumOps())
	}
	c.Training.Group = 0
	if one := env.tasks&(env.tasks-1) == 0; !one && c.Group > 1 && c.Training.Iterations == 1 && c.Training.Baseline == ppo.Standardised && c.Training.Samples%c.Group == 0 && c.Training.Samples > c.Group {
		c.Training.Group = c.Group
	}
	backend, err := c.backend(p.device)
	if err != nil {
		return nil, err
	}
	run := &training{env: env, problem: problem, method: p.Name(), start: now(problem), end: 1}
	if isJoint(env.tasks) {
		run.end = c.Joint.Explore
	}
	run.notes = p.begin(run, backend)
	stream := uint64(0x60)
	if run.resumed != nil {
		stream |= uint64(p.rounds) << 8 // other samples than those of the first rounds
	}
	if run.from < run.end {
		err = p.learn(ctx, run, c, backend, rand.New(rand.NewPCG(problem.Seed, stream)))
		p.at.Spent = run.spent()
	}
	if err != nil && (run.best == nil || ctx.Err() == nil) {
		return nil, err
	}
	if run.best == nil {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("policy: stopped before its first placement: %w", err)
		}
		return nil, errNothingSampled
	}
	o := &plan.Outcome{Device: run.best.device, Score: run.score, Evaluations: env.spent}
	if env.tasks.Has(plan.Schedule) {
		o.Priority = run.best.priority
	}
	if env.tasks.Has(plan.Fuse) {
		o.Fusion = run.best.fusion
	}
	if err := p.settle(ctx, run, o); err != nil {
		return nil, err
	}
	o.Notes = run.notes
	if m := backend.Missing(); m != nil {
		o.Notes = append(o.Notes, fmt.Sprintf("no BLAS library found, the network runs on %s: slower", backend.Name()))
	}
	return o, nil
}

// leave brings the network to the host and gives back what it has on the device,
// which others may need.
func (p *Policy) leave() error {
	if p.network == nil {
		return nil
	}
	return p.network.Close()
}

// fitSamples lowers the samples of a round so that a small budget still has
// rounds to learn from.
func fitSamples(c ppo.Config, evaluations int) int {
	k := c.Samples
	for evaluations > 0 && k > 8*c.Minibatches && k*8 > evaluations {
		k /= 2
	}
	return k - k%c.Minibatches
}

// batch is the network's input for the units of env.
func (p *Policy) batch(problem *plan.Problem, c PolicyConfig, env *environment, s stage, random *rand.Rand) *gonet.Batch {
	table := features.Build(problem.Graph, s.part, s.chain, problem.Evaluator.OpSeconds(0), problem.Machine, c.Features, random)
	near := features.Adjacency(problem.Graph, env.part, graphsage.Default(1).MaxNeighbours)
	n := env.part.NumUnits()
	b := &gonet.Batch{
		X:          nn.Mat{N: n, D: len(table.Names), V: table.X},
		Neighbours: &graphsage.Neighbours{Start: near.At, Index: near.Index},
	}
	if !env.tasks.Has(plan.Place) {
		return b
	}
	b.Allowed = make([]bool, n*c.Devices)
	for u := range n {
		copy(b.Allowed[u*c.Devices:], env.allowed[u*env.devices:(u+1)*env.devices])
	}
	return b
}

// errNothingSampled is of a budget that ends before the first round.
var errNothingSampled = errors.New("policy: no placement was sampled within the budget")

// Save writes the network, its optimiser, the configuration and how far the
// training is; it is part of Saver.
func (p *Policy) Save(path string) error {
	if p.network == nil {
		return nil
	}
	c, err := json.Marshal(p.config)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	at, err := json.Marshal(p.at)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	extra := map[string]string{policyKey: string(c), featuresKey: fmt.Sprint(features.Version), roundsKey: fmt.Sprint(p.rounds), positionKey: string(at)}
	return fsx.WriteFile(path, func(w io.Writer) error { return p.network.Save(w, extra) })
}
