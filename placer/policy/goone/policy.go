package goone

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/graphsage"
	"placer/nn"
	"placer/nn/gonet"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/features"
	"placer/placer/policy/rollout"
	"placer/plan"
	"placer/transformerxl"
)

// Policy is the papers' network, trained by PPO on the graph at hand. It implements
// plan.Placer.
type Policy struct {
	config  Config
	device  nn.Device
	network *gonet.Network // nil until Place begins
	trained int            // rounds
	at      curriculum.Position
	drawn   []byte        // state of the random stream from which the present stage's features were drawn
	earlier *plan.Outcome // of the training to go on with; nil for none
	path    string        // its checkpoint
}

// New returns an untrained policy.
func New(c Config) (*Policy, error) {
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

// Place trains until the budget is spent and returns the best plan that was sampled.
func (p *Policy) Place(ctx context.Context, problem *plan.Problem) (_ *plan.Outcome, err error) {
	if p.device != nil {
		defer func() { err = errors.Join(err, p.leave()) }()
	}
	t, err := p.begin(ctx, problem)
	if err != nil {
		return nil, err
	}
	err = t.learn()
	p.at.Spent = t.run.Spent()
	o, err := t.run.Ended(ctx, err)
	if err != nil {
		return nil, err
	}
	o.Notes = append(t.notes, o.Notes...)
	if t.backend.Missing() != nil {
		o.Notes = append(o.Notes, fmt.Sprintf("no BLAS library found, the network runs on %s: slower", t.backend.Name()))
	}
	return o, nil
}

// begin returns a training on problem, or that of a checkpoint to go on with.
func (p *Policy) begin(ctx context.Context, problem *plan.Problem) (*trainer, error) {
	run, err := rollout.New(problem, p.Name(), p.config.Workers)
	if err != nil {
		return nil, err
	}
	c := nn.Default()
	c.Device, c.Workers = p.device, p.config.Workers
	backend, err := nn.NewBackend(c)
	if err != nil {
		return nil, err
	}
	t := &trainer{Policy: p, ctx: ctx, run: run, decoder: rollout.NewDecoder(problem), backend: backend, seconds: problem.Evaluator.OpSeconds(0)}
	run.Decodes(t.decoder.Decode)
	t.samples = rollout.FitSamples(p.config.Samples, problem.Budget.Evaluations)
	t.notes = t.resume()
	stream := uint64(0x60)
	if t.resumed {
		stream |= uint64(p.trained) << 8 // other samples than those of the first rounds
	}
	t.source = rand.NewPCG(problem.Seed, stream)
	t.random = rand.New(t.source)
	return t, nil
}

// leave brings the network to the host and gives back what it has on the device,
// which others may need.
func (p *Policy) leave() error {
	if p.network == nil {
		return nil
	}
	return p.network.Close()
}

// networkDevices is the least number of devices that the network can name; those
// beyond the machine's are masked.
const networkDevices = 8

// networkConfig returns the configuration of the network for batches of f columns.
func (t *trainer) networkConfig(f int) gonet.Config {
	c, d := t.config, gonet.Default(f, 0)
	for _, h := range t.decoder.Heads() {
		switch h.Task {
		case plan.Place:
			d.Decision.Choices = max(networkDevices, h.Levels)
		case plan.Schedule:
			d.Decision.ScheduleLevels = h.Levels
		case plan.Fuse:
			d.Decision.FusionLevels, d.Decision.FusionKinds = h.Levels, h.Kinds
		}
	}
	d.Iterations = c.Iterations
	d.Decision.Segment, d.Decision.Memory = c.Segment, 0
	if c.Recurrence {
		d.Decision.Memory = c.Segment
	}
	d.Decision.Modulation, d.Decision.Attention = c.Modulation, c.Attention
	return d
}

// newNetwork gives the policy a network for batches of f columns. The middle levels
// of scheduling and fusion have a head start: the scheduler as it is, and everything
// fused.
func (t *trainer) newNetwork(f int) (err error) {
	if t.network, err = gonet.New(t.networkConfig(f), t.random, t.backend); err != nil {
		return err
	}
	for _, task := range t.network.Config().Decision.Tasks() {
		if task.Name == transformerxl.Placement {
			continue
		}
		bias := t.network.Params().Lookup(task.Name + ".fc2.b").Value
		for k := range task.Kinds {
			bias[k*task.Levels+task.Levels/2] = middleBias
		}
	}
	return nil
}

// middleBias is by how much the logit of the middle level of schedules and fusion
// begins above the others'.
const middleBias = 2

// identity returns the stream that the features of a stage's units are drawn from, and
// notes where it stands: the columns by which units are told apart are ones that the network
// is trained on, so the first stage of a training that goes on draws those of the checkpoint.
func (t *trainer) identity() (*rand.Rand, error) {
	if t.resumed && len(t.drawn) > 0 {
		x := new(rand.PCG)
		if err := x.UnmarshalBinary(t.drawn); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		return rand.New(x), nil
	}
	var err error
	if t.drawn, err = t.source.MarshalBinary(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return t.random, nil
}

// batch is the network's input for the units of s.
func (t *trainer) batch(s curriculum.Stage) (*gonet.Batch, error) {
	random, err := t.identity()
	if err != nil {
		return nil, err
	}
	p := t.run.Problem
	table := features.Build(features.Source{Graph: p.Graph, Units: s.Units, Chain: s.Chain, Seconds: t.seconds, Machine: p.Machine}, t.config.features(), random)
	near := features.Adjacency(p.Graph, s.Units, graphsage.Default(1).MaxNeighbours)
	b := &gonet.Batch{
		X:          nn.Mat{N: s.Units.NumUnits(), D: len(table.Names), V: table.X},
		Neighbours: &graphsage.Neighbours{Start: near.Start, Index: near.Unit},
	}
	if !p.Decides(plan.Place) {
		return b, nil
	}
	allowed, err := rollout.Allowed(p, s.Units)
	if err != nil {
		return nil, err
	}
	devices := p.Machine.NumDevices()
	wide := max(networkDevices, devices)
	b.Allowed = make([]bool, b.X.N*wide)
	for u := range b.X.N {
		copy(b.Allowed[u*wide:], allowed[u*devices:(u+1)*devices])
	}
	return b, nil
}
