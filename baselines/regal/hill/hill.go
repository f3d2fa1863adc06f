// Package hill owns REGAL's baseline local search (Paliwal et al., ICLR 2020,
// A.10): from a random placement and a topological order, moves of one op to
// another device or to another place in the order, kept when they help.
package hill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/baselines/regal/sched"
)

// Config holds what the paper leaves open or tunes.
type Config struct {
	// Starts is the number of random starts that share the evaluations.
	Starts int
	// Sideways keeps moves that change nothing.
	Sideways bool
	// Neighbours bounds a move in the order to exchanges with the next op; without,
	// an op moves anywhere between its inputs and its consumers.
	Neighbours bool
	// Eager sends a tensor as soon as it is made; without, just before it is first
	// needed.
	Eager bool
}

// Default returns the plain reading of the paper: one start, only what helps.
func Default() Config { return Config{Starts: 1} }

// Validate reports every fault of c.
func (c Config) Validate() error {
	if c.Starts < 1 {
		return fmt.Errorf("hill: %d starts, want at least 1", c.Starts)
	}
	return nil
}

// Result is the best schedule found.
type Result struct {
	Device      []uint8
	Order       []int32 // of ops
	Cost        float64
	Evaluations int
}

// Solve searches with e until evaluations are spent or ctx ends. It panics if c
// is not valid or no evaluation is allowed.
func Solve(ctx context.Context, e *sched.Evaluator, c Config, evaluations int, r *rand.Rand) *Result {
	if err := errors.Join(c.Validate(), positive(evaluations)); err != nil {
		panic(err)
	}
	p := e.Problem()
	s := &walk{e: e, p: p, c: c, r: r, device: make([]uint8, p.N()), order: make([]int32, p.N()), at: make([]int, p.N())}
	best := &Result{Device: make([]uint8, p.N()), Order: make([]int32, p.N())}
	for start := range c.Starts {
		share := (evaluations - best.Evaluations) / (c.Starts - start)
		if start > 0 && (share == 0 || ctx.Err() != nil) {
			continue
		}
		cost := s.begin()
		best.Evaluations++
		for k := 1; k < share && (k%64 != 0 || ctx.Err() == nil); k++ {
			cost = s.step(cost)
			best.Evaluations++
		}
		if start == 0 || cost < best.Cost {
			best.Cost = cost
			copy(best.Device, s.device)
			copy(best.Order, s.order)
		}
	}
	return best
}

func positive(evaluations int) error {
	if evaluations < 1 {
		return fmt.Errorf("hill: %d evaluations, want at least 1", evaluations)
	}
	return nil
}

type walk struct {
	e      *sched.Evaluator
	p      *sched.Problem
	c      Config
	r      *rand.Rand
	device []uint8
	order  []int32
	at     []int // place of each op in order
}

func (s *walk) cost() float64 {
	place := s.e.Place
	if s.c.Eager {
		place = s.e.PlaceEager
	}
	return s.e.Objective().Cost(s.p.Machine(), place(s.device, s.order))
}

func (s *walk) begin() float64 {
	for i := range s.device {
		s.device[i] = uint8(s.r.IntN(s.p.D()))
	}
	copy(s.order, s.p.Order())
	for k, i := range s.order {
		s.at[i] = k
	}
	return s.cost()
}

// step tries one move and returns the cost after it.
func (s *walk) step(cost float64) float64 {
	i := int32(s.r.IntN(s.p.N()))
	if s.r.Uint64()&1 == 0 && s.p.D() > 1 {
		was := s.device[i]
		s.device[i] = uint8((int(was) + 1 + s.r.IntN(s.p.D()-1)) % s.p.D())
		if now := s.cost(); s.keeps(now, cost) {
			return now
		}
		s.device[i] = was
		return cost
	}
	from := s.at[i]
	lo, hi := s.window(i)
	if s.c.Neighbours {
		lo, hi = max(lo, from-1), min(hi, from+1)
	}
	to := lo + s.r.IntN(hi-lo+1)
	s.shift(from, to)
	if now := s.cost(); s.keeps(now, cost) {
		return now
	}
	s.shift(to, from)
	return cost
}

func (s *walk) keeps(now, was float64) bool { return now < was || now == was && s.c.Sideways }

// window returns the places that op i can take in the order.
func (s *walk) window(i int32) (lo, hi int) {
	hi = len(s.order) - 1
	for _, t := range s.p.Inputs(i) {
		lo = max(lo, s.at[s.p.Producer(t)]+1)
	}
	for t, end := s.p.Outputs(i); t < end; t++ {
		for _, v := range s.p.Consumers(t) {
			hi = min(hi, s.at[v]-1)
		}
	}
	return lo, hi
}

// shift moves the op at one place to another; those in between close up.
func (s *walk) shift(from, to int) {
	i := s.order[from]
	step := 1
	if to < from {
		step = -1
	}
	for k := from; k != to; k += step {
		s.order[k] = s.order[k+step]
		s.at[s.order[k]] = k
	}
	s.order[to], s.at[i] = i, to
}
