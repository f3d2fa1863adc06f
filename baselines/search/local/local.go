// Package local owns local search on units: every unit in turn, from chains to
// cells, goes to the device where the step is shortest, until no single move
// helps; then a few random units move and it starts over from there.
package local

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// Placer is iterated local search with first improvement.
type Placer struct {
	// Start is a placement to start from, [N]; nil means contiguous blocks of chains.
	Start []uint8
}

var _ plan.Placer = Placer{}

// Name returns "local".
func (Placer) Name() string { return "local" }

// Kind returns plan.Search.
func (Placer) Kind() plan.Kind { return plan.Search }

// Place searches until the budget is spent or ctx ends.
func (l Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	s := &search{
		track: budget.New(ctx, p, l.Name()), p: p, rng: rand.New(rand.NewPCG(p.Seed, 0x6c6f63616c)), // "local"
		device: make([]uint8, p.Graph.NumOps()), trial: make([]uint8, p.Graph.NumOps()),
	}
	if l.Start == nil {
		l.Start = p.Units.Blocks(p.Evaluator.OpSeconds(0), p.Machine.NumDevices())
	}
	copy(s.device, l.Start)
	if p.Moves != nil {
		s.moves = p.Moves()
	}
	s.reset()
	s.score = s.track.Try(s.device)
	home, at := slices.Clone(s.device), s.score // the best local optimum
	for p.Machine.NumDevices() > 1 && !s.track.Done() {
		for level := unit.Chain; level >= unit.Cell && !s.track.Done(); level-- {
			s.descend(level)
		}
		if s.score.Better(at) {
			copy(home, s.device)
			at = s.score
		} else {
			copy(s.device, home)
			s.reset()
		}
		if !s.track.Done() {
			s.kick()
		}
	}
	return s.track.Outcome()
}

// search is the state of one Place.
type search struct {
	track         *budget.Tracker
	p             *plan.Problem
	rng           *rand.Rand
	device, trial []uint8 // [N]
	score         plan.Score
	moves         plan.Moves   // that holds the trial, or nil
	moved         []graph.OpID // by the trial
}

// descend moves units of level l, in random order, until a whole pass over them
// finds no better place for any, alone or together with its counterpart.
func (s *search) descend(l unit.Level) {
	units := s.p.Units.Levels[l]
	order := s.rng.Perm(units.NumUnits())
	for idle := 0; idle < len(order); {
		for _, u := range order {
			if s.track.Done() || idle == len(order) {
				return
			}
			if s.improve(l, int32(u)) {
				idle = 0
			} else {
				idle++
			}
		}
	}
}

// improve takes the first better place for unit u of level l.
func (s *search) improve(l unit.Level, u int32) bool {
	with := []int32{-1}
	if ps := s.p.Units.Counterparts[l]; ps != nil && ps[u] >= 0 {
		with = append(with, ps[u])
	}
	first := s.rng.IntN(s.p.Machine.NumDevices())
	for k := range s.p.Machine.NumDevices() {
		d := uint8((first + k) % s.p.Machine.NumDevices())
		for _, counterpart := range with {
			if s.track.Done() {
				return false
			}
			copy(s.trial, s.device)
			s.moved = s.moved[:0]
			s.put(l, u, d)
			if counterpart >= 0 {
				s.put(l, counterpart, d)
			}
			if len(s.moved) == 0 {
				continue
			}
			if score, ok := s.try(); ok && score.Better(s.score) {
				s.score = score
				copy(s.device, s.trial)
				return true
			}
			s.takeBack()
		}
	}
	return false
}

// reset puts every op of moves where the search is.
func (s *search) reset() {
	if s.moves != nil {
		s.moves.Reset(plan.Decision{Device: s.device, Priority: s.p.Priority})
	}
}

// try scores the trial; ok is false where it is known to be no better than where the
// search is.
func (s *search) try() (score plan.Score, ok bool) {
	if s.moves == nil {
		return s.track.Try(s.trial), true
	}
	limit := math.Inf(1)
	if s.score.Feasible() {
		limit = s.score.Value
	}
	return s.track.TryMoved(s.moves, s.trial, limit)
}

// put moves unit u of level l to device d in the trial.
func (s *search) put(l unit.Level, u int32, d uint8) {
	ops := s.p.Units.Levels[l].Ops[u]
	for _, i := range ops {
		if s.trial[i] != d {
			s.trial[i] = d
			s.moved = append(s.moved, i)
		}
	}
	if s.moves != nil {
		s.moves.Move(ops, d)
	}
}

// takeBack undoes the moves of the trial.
func (s *search) takeBack() {
	if s.moves == nil {
		return
	}
	for k, i := range s.moved {
		s.moves.Move(s.moved[k:k+1], s.device[i])
	}
}

// kicked is the number of units that move at random when no single move helps.
const kicked = 3

// kick moves random units of a random level and evaluates the result.
func (s *search) kick() {
	l := unit.Cell + unit.Level(s.rng.IntN(int(unit.NumLevels-unit.Cell)))
	copy(s.trial, s.device)
	for range kicked {
		s.put(l, int32(s.rng.IntN(s.p.Units.Levels[l].NumUnits())), uint8(s.rng.IntN(s.p.Machine.NumDevices())))
	}
	copy(s.device, s.trial)
	s.score = s.track.Try(s.device)
}
