package rl2017

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/learned/reinforce"
	"placer/graph/unit"
	"placer/nn"
	"placer/nn/seq2seq"
	"placer/plan"
)

// Placer trains a policy from nothing on the graph that it places.
type Placer struct {
	Config Config
	// Observe, if not nil, is told of every round of every controller.
	Observe func(reinforce.Round)
}

var _ plan.Placer = Placer{}

// Name returns "rl-2017".
func (Placer) Name() string { return "rl-2017" }

// Kind returns plan.Policy.
func (Placer) Kind() plan.Kind { return plan.Policy }

// Place trains until the budget is spent and returns the best placement that was
// sampled.
func (r Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if err := r.Config.validate(); err != nil {
		return nil, err
	}
	trials, err := reinforce.NewTrials(ctx, p, r.Name())
	if err != nil {
		return nil, err
	}
	s, err := r.server(ctx, p, trials)
	if err != nil {
		return nil, err
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	return trials.Outcome()
}

// server holds the shared parameters and what all controllers read.
type server struct {
	config  Config
	trials  *reinforce.Trials
	observe func(reinforce.Round)

	groups *unit.Partition
	items  nn.Mat // [T,F]
	params *nn.Params
	adam   *nn.Adam

	controllers []*controller
}

func (r Placer) server(ctx context.Context, p *plan.Problem, trials *reinforce.Trials) (*server, error) {
	s := &server{config: r.Config, trials: trials, observe: r.Observe, adam: nn.NewAdam(nn.DefaultAdam()), params: nn.NewParams()}
	room := p.Machine.Devices[0].Memory
	for _, d := range p.Machine.Devices {
		room = min(room, d.Memory)
	}
	var err error
	if s.groups, err = (colocation{p.Graph, modules(p.Graph, p.Units), p.Evaluator.OpSeconds(0), r.Config.Groups, room / roomShare}).groups(ctx); err != nil {
		return nil, fmt.Errorf("%s: stopped before its first placement: %w", r.Name(), err)
	}
	e := reinforce.NewEmbedder(p.Graph, s.groups)
	n := s.groups.NumUnits()
	s.items = nn.NewMat(n, e.Columns(n))
	group := make([]int32, n)
	for t := range group {
		group[t] = int32(t)
	}
	e.Embed(group, s.items)

	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	network := seq2seq.Config{Features: s.items.D, Width: r.Config.Width, Choices: p.Machine.NumDevices(), Aligned: r.Config.Aligned}
	weights := rand.NewPCG(p.Seed, 0x2017)
	seq2seq.New(network, s.params, rand.New(weights))
	samples := reinforce.Samples(p, r.Config.Controllers*r.Config.Samples)
	controllers := min(r.Config.Controllers, samples)
	for i := range controllers {
		c, err := newController(s, network, backend, max(1, samples/controllers), rand.New(rand.NewPCG(p.Seed, 0x20170+uint64(i))))
		if err != nil {
			return nil, err
		}
		s.controllers = append(s.controllers, c)
	}
	return s, nil
}

// roomShare of a device's memory is the most that a group may hold.
const roomShare = 8

// run lets the controllers take turns in the order in which their measurements
// end, until the budget is spent.
func (s *server) run() error {
	for _, c := range s.controllers {
		if more, err := c.begin(); err != nil || !more {
			return err
		}
	}
	for {
		c := s.controllers[s.next()]
		if err := s.update(c); err != nil {
			return err
		}
		if more, err := c.begin(); err != nil || !more {
			return err
		}
	}
}

// next returns the controller whose measurements end first, the lower of equals.
func (s *server) next() int {
	k := 0
	for i, c := range s.controllers {
		if c.end < s.controllers[k].end {
			k = i
		}
	}
	return k
}

// update takes a step with the gradient of c, which belongs to the parameters
// that c had read.
func (s *server) update(c *controller) error {
	if !c.counts {
		return nil
	}
	for i, p := range s.params.All() {
		copy(p.Grad, c.params.All()[i].Grad)
	}
	if _, err := s.adam.Step(s.params, s.trials.Rate(s.config.LearningRate)); err != nil {
		return fmt.Errorf("rl-2017: %w", err)
	}
	return nil
}
