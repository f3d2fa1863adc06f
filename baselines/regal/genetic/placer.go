// Package genetic owns BRKGA and REGAL as methods under the problem's own simulator:
// what is evolved are placements and priorities, what they cost is the problem's
// objective (Paliwal et al., ICLR 2020).
package genetic

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"placer/baselines/budget"
	"placer/baselines/regal/brkga"
	"placer/baselines/regal/gnn"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/graph"
	"placer/graph/unit"
	"placer/internal/words"
	"placer/nn"
	"placer/plan"
	"placer/units"
)

// BRKGA evolves a key of affinity for each cell and device, and where the schedule is
// decided a priority of each op, from uniform keys.
type BRKGA struct{}

var _ plan.Placer = BRKGA{}

// Name returns "BRKGA".
func (BRKGA) Name() string { return "BRKGA" }

// Kind returns plan.Search.
func (BRKGA) Kind() plan.Kind { return plan.Search }

// Place evolves until the budget is spent or ctx ends.
func (b BRKGA) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	cells := p.Units.Levels[unit.Cell].Ops
	x := newGenome(ctx, p, b.Name(), cells, len(cells))
	for u := range cells {
		x.lead[u] = u
	}
	return x.evolve(brkga.Uniform{}, brkga.Default())
}

// REGAL is BRKGA with a key for each op, whose mutants are drawn from what the trained
// policy proposes for the graph. The policy reads the graph as its own performance model
// sees it, in 400 evaluations of that model; it was trained for two devices, and answers
// for no other number.
type REGAL struct{}

var _ plan.Placer = REGAL{}

// Name returns "REGAL".
func (REGAL) Name() string { return "REGAL" }

// Kind returns plan.Policy.
func (REGAL) Kind() plan.Kind { return plan.Policy }

// Place asks the policy and evolves until the budget is spent or ctx ends.
func (r REGAL) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	if n := p.Machine.NumDevices(); n != 2 {
		return nil, budget.Unavailable(fmt.Sprintf("its policy was trained for two devices, here are %d", n))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: stopped before its first placement: %w", r.Name(), err)
	}
	ops := p.Units.Levels[unit.Op].Ops
	x := newGenome(ctx, p, r.Name(), ops, p.Graph.NumOps())
	for u, members := range ops {
		x.lead[u] = int(members[0])
	}
	proposal, err := propose400(ctx, p, x.rng)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name(), err)
	}
	x.track.Note("its policy read the graph in %s of its own performance model", words.Count(proposal.Evaluations, "evaluation", "evaluations"))
	c := brkga.Default()
	if proposal.EliteBias != 0 {
		c.EliteBias = proposal.EliteBias
	}
	return x.evolve(first{proposal.Distributions, x.Keys(), p.Graph.NumOps() * 3}, c)
}

// propose400 returns what the trained policy proposes for p.
func propose400(ctx context.Context, p *plan.Problem, r *rand.Rand) (*propose.Proposal, error) {
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	all, err := gnn.BuiltIn(backend)
	if err != nil {
		return nil, err
	}
	n := p.Graph.NumOps()
	seconds := make([]units.Seconds, n)
	for i, s := range p.Evaluator.OpSeconds(0) {
		seconds[i] = units.Seconds(s)
	}
	q, err := sched.FromGraph(p.Graph, seconds, sched.TwoDevices())
	if err != nil {
		return nil, err
	}
	return all[0].Policy.Propose(ctx, q, sched.RunTime, r)
}

// first draws keys of distributions over all keys, as many as are asked for: the last are
// priorities, which a problem that decides none leaves out.
type first struct {
	brkga.Distributions
	keys, all int
}

// Sample is as brkga.Distributions says.
func (f first) Sample(r *rand.Rand, keys []float32) {
	all := make([]float32, max(f.all, len(keys)))
	f.Distributions.Sample(r, all[:f.all])
	copy(keys, all[:f.keys])
}

// genome decodes chromosomes of one problem.
type genome struct {
	track    *budget.Tracker
	p        *plan.Problem
	rng      *rand.Rand
	units    [][]graph.OpID // of decision
	lead     []int          // [units] whose affinities count
	holders  int            // of affinities
	device   []uint8        // [N]
	priority []int32        // [N]; nil where none is decided
	order    []int32        // [N] scratch
}

func newGenome(ctx context.Context, p *plan.Problem, name string, ops [][]graph.OpID, holders int) *genome {
	n := p.Graph.NumOps()
	x := &genome{track: budget.New(ctx, p, name), p: p, rng: rand.New(rand.NewPCG(p.Seed, 0x6272)), units: ops, lead: make([]int, len(ops)), holders: holders, device: make([]uint8, n)}
	if p.Decides(plan.Schedule) {
		x.priority, x.order = make([]int32, n), make([]int32, n)
	}
	return x
}

// Keys returns the length of a chromosome.
func (x *genome) Keys() int { return x.holders*x.p.Machine.NumDevices() + len(x.priority) }

// Cost is that of the decoded plan: what does not fit is above all that does.
func (x *genome) Cost(keys []float32) float64 {
	if x.track.Evaluations() > 0 && x.track.Done() {
		return math.Inf(1)
	}
	x.decode(keys)
	s := x.track.TryPlan(x.device, x.priority)
	if s.Overflow > 0 {
		return 1e18 + float64(s.Overflow)
	}
	return s.Value
}

// decode gives each unit the device of its largest affinity, the first of equals, and each
// op its place among the priorities, the largest first.
func (x *genome) decode(keys []float32) {
	d := x.p.Machine.NumDevices()
	for u, ops := range x.units {
		mine := keys[x.lead[u]*d : (x.lead[u]+1)*d]
		best := 0
		for k := range mine {
			if mine[k] > mine[best] {
				best = k
			}
		}
		for _, i := range ops {
			x.device[i] = uint8(best)
		}
	}
	if x.priority != nil {
		rank(keys[x.holders*d:], x.order, x.priority)
	}
}

// evolve runs the algorithm until the budget is spent.
func (x *genome) evolve(d brkga.Distributions, c brkga.Config) (*plan.Outcome, error) {
	if !x.track.Done() {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		n := x.p.Budget.Evaluations
		if n < 1 {
			n = math.MaxInt
		}
		brkga.Run(ctx, stopping{x, stop}, d, c, brkga.Budget{Evaluations: n}, x.rng)
	}
	return x.track.Outcome()
}

// stopping is a genome that ends its run with the budget.
type stopping struct {
	*genome
	stop context.CancelFunc
}

// Cost is as brkga.Fitness says.
func (s stopping) Cost(keys []float32) float64 {
	cost := s.genome.Cost(keys)
	if s.track.Done() {
		s.stop()
	}
	return cost
}
