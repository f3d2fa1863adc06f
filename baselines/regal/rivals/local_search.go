package rivals

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/regal/sched"
)

// localSearch is REGAL's baseline local search (Paliwal et al., ICLR 2020, A.10): from
// a random placement and a topological order, moves of one op to another device or to
// another place in the order, kept when they help. It holds what the paper leaves open
// or tunes.
type localSearch struct {
	// starts is the number of random starts that share the evaluations.
	starts int
	// sideways keeps moves that change nothing.
	sideways bool
	// neighbours bounds a move in the order to exchanges with the next op; without,
	// an op moves anywhere between its inputs and its consumers.
	neighbours bool
	// eager sends a tensor as soon as it is made; without, just before it is first
	// needed.
	eager bool
}

// climbed is the best schedule found.
type climbed struct {
	Device      []uint8
	Order       []int32 // of ops
	Cost        float64
	Evaluations int
}

// solve searches with e until evaluations, at least 1, are spent or ctx ends.
func (c localSearch) solve(ctx context.Context, e *sched.Evaluator, evaluations int, r *rand.Rand) *climbed {
	if c.starts < 1 || evaluations < 1 {
		panic(fmt.Sprintf("rivals: %d starts and %d evaluations, want at least 1", c.starts, evaluations))
	}
	p := e.Problem()
	s := &climb{e: e, p: p, c: c, r: r, device: make([]uint8, p.N()), order: make([]int32, p.N()), at: make([]int, p.N())}
	best := &climbed{Device: make([]uint8, p.N()), Order: make([]int32, p.N())}
	for start := range c.starts {
		share := (evaluations - best.Evaluations) / (c.starts - start)
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

type climb struct {
	e      *sched.Evaluator
	p      *sched.Problem
	c      localSearch
	r      *rand.Rand
	device []uint8
	order  []int32
	at     []int // place of each op in order
}

func (s *climb) cost() float64 {
	place := s.e.Place
	if s.c.eager {
		place = s.e.PlaceEager
	}
	return s.e.Objective().Cost(s.p.Machine(), place(s.device, s.order))
}

func (s *climb) begin() float64 {
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
func (s *climb) step(cost float64) float64 {
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
	if s.c.neighbours {
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

func (s *climb) keeps(now, was float64) bool { return now < was || now == was && s.c.sideways }

// window returns the places that op i can take in the order.
func (s *climb) window(i int32) (lo, hi int) {
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
func (s *climb) shift(from, to int) {
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
