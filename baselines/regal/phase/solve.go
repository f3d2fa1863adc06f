package phase

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"placer/baselines/regal/sched"
	"placer/internal/faults"
)

// Config bounds the search.
type Config struct {
	Starts int // greedy schedules, the first by longest path, the others with noise
	// Rounds of annealing: one in four from a new greedy schedule, the others from
	// the best so far; 0 leaves the greedy schedule.
	Rounds int
	Moves  int // of a round on a graph of two edges an op; a denser one gets fewer, which take as long
	// Hot and Cold are the temperatures of a round, as shares of the mean op time.
	Hot, Cold float64
}

// Default returns what reaches the bound on nearly all synthetic graphs.
func Default() Config { return Config{Starts: 24, Rounds: 12, Moves: 205_000, Hot: 0.3, Cold: 0.003} }

// Quick returns what ends within milliseconds.
func Quick() Config { return Config{Starts: 8, Rounds: 1, Moves: 18_000, Hot: 0.3, Cold: 0.003} }

// validate reports every fault of c.
func (c Config) validate() error {
	var all faults.List
	all.If(c.Starts < 1 || c.Rounds < 0 || c.Moves < 0, "phase: %d starts, %d rounds, %d moves", c.Starts, c.Rounds, c.Moves)
	all.If(!(c.Cold > 0) || !(c.Hot >= c.Cold) || math.IsInf(c.Hot, 0), "phase: temperatures from %g to %g, want them to fall and stay above 0", c.Hot, c.Cold)
	return errors.Join(all...)
}

// Result is a schedule.
type Result struct {
	Device   []uint8 // [N]
	Sequence []int32 // items, as sched.Evaluator.Schedule takes them
	PhaseOf  []int32 // [N]; 0 for ops outside the phases
	Score    sched.Score
	Bound    float64 // no schedule is shorter
	Phases   int
	Moves    int
}

// errBandwidth says that transfers take time, for which phases are no model.
var errBandwidth = errors.New("phase: transfers take time")

// Solve searches a schedule of p of least run time. It does not look at the
// memory limit: the caller finds the peak in Score where the problem has one, and
// whether it is too much. It
// stops between rounds when ctx ends. It panics if c is not valid.
func Solve(ctx context.Context, p *sched.Problem, c Config, r *rand.Rand) (*Result, error) {
	if err := c.validate(); err != nil {
		panic(err)
	}
	if p.Machine().Bandwidth > 0 {
		return nil, errBandwidth
	}
	x := newInstance(p)
	res := &Result{Bound: p.LowerBound()}
	best := newState(x)
	if len(x.ops) > 0 {
		best = search(ctx, x, c, res, r)
	}
	return res, res.fill(x, best.device, best.phase)
}

// FromPhases returns the schedule of an assignment of devices and phases, [N]
// each; what it says of ops outside the phases does not matter. It returns an
// error if an edge breaks the rule.
func FromPhases(p *sched.Problem, device []uint8, at []int32) (*Result, error) {
	x := newInstance(p)
	d, k := make([]uint8, len(x.ops)), make([]int32, len(x.ops))
	for v, i := range x.ops {
		d[v], k[v] = device[i], at[i]
		if k[v] < 0 {
			return nil, fmt.Errorf("phase: op %d is in phase %d", i, k[v])
		}
	}
	res := &Result{Bound: p.LowerBound()}
	return res, res.fill(x, d, k)
}

// Outside says of each op of p whether it runs before the first phase or behind
// the last, [N].
func Outside(p *sched.Problem) []bool {
	x := newInstance(p)
	for i, late := range x.late {
		x.early[i] = x.early[i] || late
	}
	return x.early
}

// fill completes r with the schedule of an assignment, [n].
func (r *Result) fill(x *instance, device []uint8, at []int32) (err error) {
	r.PhaseOf = make([]int32, x.p.N())
	for v, i := range x.ops {
		r.PhaseOf[i] = at[v]
		r.Phases = max(r.Phases, int(at[v])+1)
	}
	r.Device, r.Sequence = x.sequence(device, at)
	if r.Score, err = sched.NewEvaluator(x.p, sched.RunTime).Schedule(r.Device, r.Sequence); err != nil {
		return fmt.Errorf("phase: %w", err)
	}
	return nil
}

// moves returns the moves of a round on x. A move takes as long as reading some
// seven edges, and it reads those of its op.
func (c Config) moves(x *instance) int {
	const own, sparse = 7.5, 2.0
	degree := float64(len(x.pred)) / float64(len(x.ops))
	return int(float64(c.Moves) * (own + sparse) / (own + max(degree, sparse)))
}

func search(ctx context.Context, x *instance, c Config, res *Result, r *rand.Rand) *state {
	mean := 0.0
	for _, t := range x.time {
		mean += t / float64(len(x.time))
	}
	best := starts(x, c.Starts, mean, r)
	now := newState(x)
	for round := 0; round < c.Rounds && best.cost > res.Bound && ctx.Err() == nil; round++ {
		hot := c.Hot * mean
		switch round % 4 {
		case 0: // another greedy schedule, with other phases
			if round == 0 {
				now.copyFrom(best)
			} else {
				now.copyFrom(starts(x, 2+c.Starts/4, mean, r))
			}
		default:
			now.copyFrom(best)
			hot /= 4
		}
		res.Moves += now.anneal(best, c.moves(x), hot, c.Cold*mean, res.Bound, r)
	}
	best.compact()
	return best
}

// starts returns the best of count greedy schedules.
func starts(x *instance, count int, mean float64, r *rand.Rand) *state {
	best, now := newState(x), newState(x)
	best.cost = math.Inf(1)
	priority := make([]float64, len(x.ops))
	waits := make([]int32, len(x.ops))
	for k := range count {
		for v, l := range x.level {
			priority[v] = l
			if k > 1 {
				priority[v] += (r.Float64() - 0.5) * mean * float64(k)
			}
		}
		slack := 0.0
		if k%2 == 1 {
			slack = mean
		}
		now.greedy(priority, slack, waits)
		if now.cost < best.cost {
			best.copyFrom(now)
		}
	}
	return best
}
