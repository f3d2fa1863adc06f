package exchange

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"placer/baselines/budget"
	"placer/plan"
	"placer/sim"
)

// MaxOps is the size of the largest graph that is searched: neighbourhoods of two changes
// grow with its square and with that of the number of devices.
const MaxOps = 64

// Placer is iterated local search (Lourenço, Martin, Stützle 2003) in the neighbourhoods of
// one change and of two, which decides on all tasks of the problem together. It takes the
// first better plan of a neighbourhood, and evaluates no plan twice but its start: plans of the
// same devices, kernels and orders are one. So it soon knows all neighbours of a plan: those
// two changes away of ten to twenty ops on three devices are a hundred to two thousand.
type Placer struct {
	// Start is a plan to start from, nil parts the problem's. Without a Device it starts
	// from a random one.
	Start plan.Decision
	// Known, if not nil, is what earlier searches of the same problem have evaluated, and is
	// told of more. Its zero value is empty.
	Known *Memory
}

var _ plan.Placer = Placer{}

// Name returns "exchange".
func (Placer) Name() string { return "exchange" }

// Kind returns plan.Search.
func (Placer) Kind() plan.Kind { return plan.Search }

// Place searches until kicks lead nowhere, the budget is spent or ctx ends. It evaluates
// nothing but plans of p, each of which counts.
func (a Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if n := p.Graph.NumOps(); n > MaxOps {
		return nil, fmt.Errorf("exchange: %d ops are too many, at most %d", n, MaxOps)
	}
	p = budget.OrDefault(p)
	s := &search{
		track: budget.New(ctx, p, a.Name()), p: p, rng: rand.New(rand.NewPCG(p.Seed, 0x65786368)), // "exch"
		neighbourhood: newNeighbourhood(p), known: a.Known,
	}
	if s.known == nil {
		s.known = new(Memory)
	}
	if s.known.plans == nil {
		*s.known = *newMemory(p)
	}
	s.begin(a.Start)
	s.descend()
	best, score := s.at.Clone(), s.score
	for idle := 0; idle < patience && len(s.changes) > 0 && !s.track.Done(); idle++ {
		s.at.set(best)
		s.kick()
		s.singly()
		if s.score.Better(worse(score)) {
			s.descend()
		}
		if s.score.Better(score) {
			idle = 0
		}
		if !score.Better(s.score) {
			best, score = s.at.Clone(), s.score
		}
	}
	return s.track.Outcome()
}

// patience is after how many kicks in a row that brought nothing the search ends.
const patience = 200

// search is the state of one Place.
type search struct {
	track *budget.Tracker
	p     *plan.Problem
	rng   *rand.Rand
	*neighbourhood
	known *Memory
	at    spot
	here  *visited   // where the search is
	score plan.Score // of here
	trial spot
}

// spot is a decision whose slices are its own.
type spot struct{ plan.Decision }

// set makes s what d is; both have the same parts.
func (s *spot) set(d plan.Decision) {
	copy(s.Device, d.Device)
	copy(s.Priority, d.Priority)
	copy(s.Fusion, d.Fusion)
}

// begin evaluates the start, and goes there with what it leaves open decided: the
// priorities of the longest path, and no fusion.
func (s *search) begin(start plan.Decision) {
	p, n := s.p, s.p.Graph.NumOps()
	switch {
	case start.Device != nil && p.Decides(plan.Place):
	case p.Device != nil:
		start.Device = p.Device
	default:
		start = s.scattered()
	}
	start = p.Complete(start)
	s.score = s.track.TryDecision(start)
	open := false
	if p.Decides(plan.Schedule) && start.Priority == nil {
		start.Priority, open = sim.CriticalPathPriority(p.Graph, p.Evaluator.OpSeconds(0)), true
	}
	if p.Decides(plan.Fuse) && start.Fusion == nil {
		start.Fusion = make([]uint8, n) // the same plan
	}
	s.at, s.trial = spot{start.Clone()}, spot{start.Clone()}
	evaluate := func(plan.Decision) plan.Score { return s.score }
	if open && !s.track.Done() {
		evaluate = s.track.TryDecision
	}
	s.here = s.known.visit(start, evaluate)
	s.score = s.here.Score
}

// scattered returns a random plan: all on one device or each op on some, all that can be
// fused or nothing.
func (s *search) scattered() plan.Decision {
	p, n := s.p, s.p.Graph.NumOps()
	start := plan.Decision{Device: make([]uint8, n)}
	together, d := s.rng.IntN(2) == 0, s.rng.IntN(p.Machine.NumDevices())
	for _, ops := range s.movable {
		if !together {
			d = s.rng.IntN(p.Machine.NumDevices())
		}
		for _, i := range ops {
			start.Device[i] = uint8(d)
		}
	}
	if p.Decides(plan.Fuse) && s.rng.IntN(2) == 0 {
		start.Fusion = slices.Repeat([]uint8{fuseWith}, n)
	}
	return start
}

// descend goes on until no plan within two changes is better.
func (s *search) descend() {
	for !s.track.Done() && (s.one() || s.two()) {
	}
}

// singly goes on until no plan within one change is better.
func (s *search) singly() {
	for !s.track.Done() && s.one() {
	}
}

// one goes to the first better plan within one change, and reports whether there is one.
func (s *search) one() bool {
	n := len(s.changes)
	if n == 0 {
		return false
	}
	first := s.rng.IntN(n)
	for k := range n {
		if s.try(s.changes[(first+k)%n]) {
			return true
		}
		if s.track.Done() {
			return false
		}
	}
	return false
}

// two goes to the first better plan within two changes, and reports whether there is one.
// Pairs come in strides of the golden section, so that a part of them is a sample of all.
func (s *search) two() bool {
	n := len(s.changes)
	pairs := n * (n - 1) / 2
	if pairs == 0 || s.here.ended || s.track.Done() {
		return false
	}
	step, k := stride(pairs), s.rng.IntN(pairs)
	for range pairs {
		i, j := pair(k)
		if s.try(s.changes[j], s.changes[i]) {
			return true
		}
		if s.track.Done() {
			return false
		}
		k = (k + step) % pairs
	}
	s.here.ended = true
	return false
}

// try evaluates the plan that changes lead to, unless it has been seen, and goes there if
// it is better.
func (s *search) try(changes ...change) bool {
	s.trial.set(s.at.Decision)
	for _, c := range changes {
		c.apply(s.trial.Decision)
	}
	v := s.known.visit(s.trial.Decision, s.track.TryDecision)
	if !v.Better(s.score) {
		return false
	}
	s.at, s.trial, s.here, s.score = s.trial, s.at, v, v.Score
	return true
}

// A kick makes leastKicked to leastKicked + moreKicked - 1 changes.
const leastKicked, moreKicked = 2, 4

// kick goes to a plan a few random changes away.
func (s *search) kick() {
	for range leastKicked + s.rng.IntN(moreKicked) {
		s.changes[s.rng.IntN(len(s.changes))].apply(s.at.Decision)
	}
	s.here = s.known.visit(s.at.Decision, s.track.TryDecision)
	s.score = s.here.Score
}

// near is the share by which what a kick led to may be behind the best for a look at its
// neighbours two changes away.
const near = 0.05

// worse returns s made worse by near.
func worse(s plan.Score) plan.Score {
	s.Value *= 1 + near
	return s
}

// pair returns the k-th of the pairs i > j >= 0, k = i(i-1)/2 + j, for k below 2^49.
func pair(k int) (i, j int) {
	i = int((1 + math.Sqrt(float64(1+8*k))) / 2)
	return i, k - i*(i-1)/2
}

// stride returns a number near the golden section of n that has no divisor in common with
// it.
func stride(n int) int {
	s := max(1, int(float64(n)*0.6180339887))
	for gcd(s, n) != 1 {
		s++
	}
	return s
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
