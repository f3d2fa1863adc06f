package balance

import (
	"context"
	"math"

	"placer/baselines/budget"
	"placer/baselines/partition/contiguous"
	"placer/plan"
	"placer/sim/throughput"
)

// Placer searches splits of any shape.
type Placer struct {
	// Start is a placement to start from, [N]; nil starts from the best contiguous
	// split.
	Start []uint8
}

var _ plan.Placer = Placer{}

// Name returns "balance".
func (Placer) Name() string { return "balance" }

// Kind returns plan.Search.
func (Placer) Kind() plan.Kind { return plan.Search }

// leastAllowance is the first share of the outputs that room is held for, where
// sizes do not tell what fits.
const leastAllowance = 1.0 / 256

// Place anneals until the budget is spent or ctx ends. An evaluation is spent for
// every B moves, which cost about as much, on the best placement so far.
func (b Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	track := budget.New(ctx, p, b.Name())
	if p.Objective.Normal() != plan.Throughput {
		track.Note("searches for the least largest load, not by the %s objective", p.Objective.Normal())
	}
	s := throughput.FromProblem(p)
	start := b.Start
	if start == nil {
		start = make([]uint8, p.Graph.NumOps())
		if r, err := contiguous.Solve(ctx, s, contiguous.Config{Downsets: 20_000}); err == nil {
			start, s.Allowance = r.Device, r.Allowance
		}
	}
	x, err := throughput.New(ctx, s)
	if ctx.Err() != nil {
		track.Try(start)
		return track.Outcome()
	}
	if err != nil {
		return nil, err
	}
	block := x.Gather(start)
	track.Try(x.Spread(block))
	c := Default()
	every := max(64, x.NumBlocks())
	c.Moves = every * max(1, p.Budget.Evaluations)
	if p.Budget.Evaluations <= 0 {
		c.Moves = math.MaxInt32
		c.rounds = 1
	}
	c.Seed = p.Seed
	for round := 0; !track.Done() && x.NumDevices() > 1; round++ {
		if p.Budget.Evaluations <= 0 { // one annealing after another until the time is up
			c.Moves, c.Seed = every*2000, p.Seed+uint64(round)<<32
		}
		fits, last, moves := true, block, 0
		try := func(best []uint8) bool {
			fits = track.Try(x.Spread(best)).Feasible() || x.Sums
			if fits {
				last = append([]uint8(nil), best...)
			}
			moves += every
			return fits && !track.Done()
		}
		best, _ := Search(ctx, x, block, c, try)
		if moves == 0 && ctx.Err() == nil { // a budget of fewer moves than one evaluation stands for
			try(best)
		}
		if fits {
			block = best
			continue
		}
		// What fits by its sizes does not by its peaks: hold more room.
		if s.Allowance = max(2*s.Allowance, leastAllowance); s.Allowance > 1 {
			break
		}
		block, c.Moves = last, max(every, c.Moves-moves)
		if x, err = throughput.New(ctx, s); ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return track.Outcome()
}
