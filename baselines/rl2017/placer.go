package rl2017

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/judge"
	"placer/baselines/reinforce"
	"placer/graph/unit"
	"placer/nn"
	"placer/plan"
	"placer/seq2seq"
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
	if err := r.Config.Validate(); err != nil {
		return nil, err
	}
	j := judge.New(ctx, p, r.Name())
	if j.Unbounded() && ctx.Done() == nil {
		return nil, fmt.Errorf("%s: no budget bounds it", r.Name())
	}
	s, err := r.server(p, j)
	if err != nil {
		return nil, err
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	return j.Outcome()
}

// server holds the shared parameters and what all controllers read.
type server struct {
	config  Config
	problem *plan.Problem
	judge   *judge.Judge
	observe func(reinforce.Round)
	start   float64 // on the problem's clock
	serial  float64 // seconds of all ops one after another

	groups *unit.Partition
	items  nn.Mat // [T,F]
	params *nn.Params
	adam   *nn.Adam

	controllers []*controller
	device      []uint8 // [N]
	evaluations int
	best        plan.Score
}

func (r Placer) server(p *plan.Problem, j *judge.Judge) (*server, error) {
	s := &server{config: r.Config, problem: p, judge: j, observe: r.Observe, adam: nn.NewAdam(nn.DefaultAdam()), params: nn.NewParams(), device: make([]uint8, p.Graph.NumOps())}
	if p.Clock != nil {
		s.start = p.Clock()
	}
	seconds := p.Evaluator.OpSeconds(0)
	for _, x := range seconds {
		s.serial += x
	}
	room := p.Machine.Devices[0].Memory
	for _, d := range p.Machine.Devices {
		room = min(room, d.Memory)
	}
	s.groups = Groups(p.Graph, Special(p.Graph, p.Units), seconds, r.Config.Groups, room/roomShare)
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
	left := 1 - reinforce.Spent(s.problem, s.start, s.evaluations)
	if _, err := s.adam.Step(s.params, s.config.LearningRate*(0.1+0.9*left)); err != nil {
		return fmt.Errorf("rl-2017: %w", err)
	}
	return nil
}

// try evaluates a decision for the groups.
func (s *server) try(action []int32) plan.Score {
	for i, t := range s.groups.Of {
		s.device[i] = uint8(action[t])
	}
	x := s.judge.Try(s.device)
	if s.evaluations == 0 || x.Better(s.best) {
		s.best = x
	}
	s.evaluations++
	return x
}
