package replan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"placer/baselines/listsched"
	"placer/baselines/search/anneal"
	"placer/graph"
	"placer/graph/unit"
	"placer/internal/words"
	"placer/placer/methods"
	"placer/placer/pretrained"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/units"
)

// Lost is the device of an op whose device is not there any more.
const Lost = math.MaxUint8

// ErrLimit says that a limit is below what has to move.
var ErrLimit = errors.New("the limit is too low")

// Outcome is a changed plan.
type Outcome struct {
	plan.Outcome
	// Moved are the bytes of weights, optimizer state and constants that a device gets and did not
	// hold; Forced are those of devices that are lost; Held are all.
	Moved, Forced, Held units.Bytes
	// Kept is the best of the plans that move nothing but what is forced.
	Kept plan.Score
}

// Find searches p, on the changed machine, for a plan near old, [N], the devices of the ops
// before, by their numbers on p's machine or Lost. At most limit bytes move; without a
// limit it is below 0. An eighth of p's budget goes to a search from nothing, the plan of each of
// whose methods is then led back to the limit, the rest to annealing under the limit from the best
// of those and of old.
func Find(ctx context.Context, p *problem.Problem, old []uint8, limit units.Bytes) (*Outcome, error) {
	n := p.Graph.NumOps()
	if len(old) != n {
		return nil, fmt.Errorf("the old plan places %s, graph %s has %d", words.Count(len(old), "op", "ops"), p.Graph.Name(), n)
	}
	x := &finder{p: &p.Problem, old: old, limit: limit, alike: alike(p.Graph, p.Units.Levels[unit.Cell])}
	out := &Outcome{}
	for i := range graph.OpID(n) {
		out.Held += p.Graph.Op(i).Resident
		if old[i] == Lost {
			out.Forced += p.Graph.Op(i).Resident
		}
	}
	if limit < 0 {
		x.limit = math.MaxInt64
	}
	if out.Forced > x.limit {
		return nil, fmt.Errorf("%w: %d B were on devices that are lost, the limit is %d B; give that much at least", ErrLimit, int64(out.Forced), int64(limit))
	}
	kept, err := x.keep(ctx)
	if err != nil {
		return nil, err
	}
	out.Kept = p.Evaluate(kept)

	start, tried, err := x.fromNothing(ctx, p, shareOf(p.Budget, fromNothing), kept)
	if err != nil {
		return nil, err
	}
	near := p.Problem
	x.ledger().limit(&near)
	led, err := x.anneal(ctx, &near, start, shareOf(p.Budget, annealed))
	if err != nil {
		return nil, err
	}
	out.Outcome = *led
	out.Evaluations += tried
	out.Moved = x.moved(led.Device)
	out.Score = p.Evaluate(led.Device)
	return out, nil
}

// anneal anneals under the limit: one half of the budget from coarse to fine, and many decisions
// anew by list scheduling; the other from there, by the moves that a network learned to choose.
func (x *finder) anneal(ctx context.Context, p *plan.Problem, start []uint8, b plan.Budget) (*plan.Outcome, error) {
	q := *p
	q.Budget = plan.Budget{Seconds: b.Seconds / 2, Evaluations: (b.Evaluations + 1) / 2}
	a := anneal.Placer{Starts: [][]uint8{start}, Workers: 1, Coarsened: x.limitCoarsened, Allowance: &anneal.Allowance{Cost: x.ledger().moves, Most: x.limit}, Recreate: true}
	led, err := a.Place(ctx, &q)
	if err != nil {
		return nil, err
	}
	if a.Guide, err = pretrained.Moves(plan.Place); err != nil {
		return nil, err
	}
	a.Starts, a.Recreate, a.Cool = [][]uint8{led.Device}, false, coolChains
	q.Evaluator, q.Budget.Evaluations = q.Evaluator.Clone(), max(min(1, b.Evaluations), b.Evaluations/2)
	o, err := a.Place(ctx, &q)
	if err != nil {
		return nil, err
	}
	o.Evaluations += led.Evaluations
	return o, nil
}

// coolChains leaves out the stages of annealing that rarely keep a good start.
const coolChains = 2

// Eighths of a budget.
const (
	fromNothing = 1
	annealed    = 7
)

// shareOf returns so many eighths of b.
func shareOf(b plan.Budget, eighths int) plan.Budget {
	return plan.Budget{Seconds: b.Seconds * float64(eighths) / 8, Evaluations: max(min(1, b.Evaluations), b.Evaluations*eighths/8)}
}

// anew are the methods of a search from nothing, beside annealing from kept.
var anew = []string{"human", "listsched", "heft-units", "etf-units", "anneal"}

// fromNothing searches the machine as if nothing were there yet, leads the plan of every method
// back to the limit, and returns the best of those and kept, and the evaluations made.
func (x *finder) fromNothing(ctx context.Context, p *problem.Problem, b plan.Budget, kept []uint8) (best []uint8, tried int, err error) {
	ms := slices.DeleteFunc(methods.ForSearch(methods.Of(p), methods.Options{Level: methods.Default().Level, Workers: 1}), func(m search.Method) bool {
		return !slices.Contains(anew, m.Name)
	})
	for k := range ms {
		if ms[k].Stage == search.StageSearch {
			ms[k].New = func(search.Start) (plan.Placer, error) {
				return anneal.Placer{Starts: [][]uint8{kept}, Workers: 1}, nil
			}
		}
	}
	c := search.Default()
	c.Budget, c.Seed, c.Workers = b, p.Seed, 1
	clock, begin := p.Clock, 0.0
	if clock != nil {
		begin = clock()
	} else {
		clock = func() float64 { return 0 }
	}
	h := search.Host{Clock: func() float64 { return clock() - begin }, CPU: func() float64 { return 0 }}
	found, err := search.Search(ctx, p, ms, c, h)
	if errors.Is(err, search.ErrNoPlacement) || errors.Is(err, search.ErrNoTime) {
		return kept, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	best = kept
	for k := range found.Rows {
		if led := x.lead(ctx, found.Rows[k].Device); x.judge(led).Better(x.judge(best)) {
			best = led
		}
	}
	return best, found.Evaluations, nil
}

// finder knows what moves.
type finder struct {
	p     *plan.Problem
	old   []uint8
	limit units.Bytes
	alike [][][]int32 // branches that can take each other's place, by class
	ops   *ledger     // made where it is asked for
}

// judge is the score of a placement whose bytes beyond the limit count as if they did not
// fit.
func (x *finder) judge(device []uint8) plan.Score {
	s := x.p.Evaluate(device)
	s.Overflow += max(0, x.moved(device)-x.limit)
	return s
}

// keep returns the best placement that moves no bytes but what is lost: all of it to one
// device; its cells, in order, shared out in proportion to free memory; or by list scheduling
// around what stays, which is every op or those alone that hold bytes.
func (x *finder) keep(ctx context.Context) ([]uint8, error) {
	if !slices.Contains(x.old, Lost) {
		return slices.Clone(x.old), nil
	}
	n := x.p.Machine.NumDevices()
	free := make([]float64, n)
	for d := range free {
		free[d] = float64(x.p.Machine.Devices[d].Memory)
	}
	total := 0.0
	for i, d := range x.old {
		if b := float64(x.p.Graph.Op(graph.OpID(i)).Resident); d != Lost {
			free[d] -= b
		}
	}
	for d := range free {
		free[d] = max(free[d], 0)
		total += free[d]
	}
	cells := x.p.Units.Levels[unit.Cell]
	lost := 0.0
	weight := func(ops []graph.OpID) (w float64) {
		for _, i := range ops {
			if x.old[i] == Lost {
				w += 1 + float64(x.p.Graph.Op(i).Resident)
			}
		}
		return w
	}
	for _, ops := range cells.Ops {
		lost += weight(ops)
	}
	var best []uint8
	var score plan.Score
	try := func(of func(before float64) uint8) {
		device, before := slices.Clone(x.old), 0.0
		for _, ops := range cells.Ops {
			d := of(before)
			before += weight(ops)
			for _, i := range ops { // what is left of a cell draws the rest of it
				if x.old[i] != Lost {
					d = x.old[i]
				}
			}
			for _, i := range ops {
				if x.old[i] == Lost {
					device[i] = d
				}
			}
		}
		if s := x.p.Evaluate(device); best == nil || s.Better(score) {
			best, score = device, s
		}
	}
	for d := range uint8(n) {
		try(func(float64) uint8 { return d })
	}
	try(func(before float64) uint8 {
		at, share := 0, before/max(lost, 1)*total
		for at < n-1 && share >= free[at] {
			share -= free[at]
			at++
		}
		return uint8(at)
	})
	holders := slices.Clone(x.old)
	for i := range holders {
		if x.p.Graph.Op(graph.OpID(i)).Resident == 0 {
			holders[i] = Lost
		}
	}
	for _, at := range [][]uint8{x.old, holders} {
		q := *x.p
		q.Evaluator, q.Report = x.p.Evaluator.Clone(), nil
		o, err := listsched.Pinned{Device: at, Free: Lost}.Place(ctx, &q)
		if err != nil {
			return nil, err
		}
		if s := x.p.Evaluate(o.Device); s.Better(score) {
			best, score = o.Device, s
		}
	}
	return best, nil
}

// lead renames the devices of a placement, and has branches that are alike take each other's
// place, so that few bytes move, and then puts chains back where they were until the limit
// holds, those first that cost least for a byte.
func (x *finder) lead(ctx context.Context, device []uint8) []uint8 {
	at := x.swapped(x.renamed(x.swapped(device)))
	if x.moved(at) <= x.limit {
		return at
	}
	put := func(device []uint8, ops []graph.OpID) {
		for _, i := range ops {
			if x.old[i] != Lost {
				device[i] = x.old[i]
			}
		}
	}
	type back struct {
		ops  []graph.OpID
		cost float64
	}
	var order []back
	before, held := x.p.Evaluate(at), x.moved(at)
	for _, ops := range x.p.Units.Levels[unit.Chain].Ops {
		trial := slices.Clone(at)
		put(trial, ops)
		gain := float64(held - x.moved(trial))
		if gain <= 0 {
			continue
		}
		cost := 0.0
		if ctx.Err() == nil {
			s := x.p.Evaluate(trial)
			cost = (s.Value - before.Value + float64(s.Overflow-before.Overflow)) / gain
		}
		order = append(order, back{ops, cost})
	}
	slices.SortStableFunc(order, func(a, b back) int { return cmp.Compare(a.cost, b.cost) })
	for _, c := range order {
		if x.moved(at) <= x.limit {
			break
		}
		put(at, c.ops)
	}
	return at
}

// renamed gives devices of equal figures the names under which most bytes stay.
func (x *finder) renamed(device []uint8) []uint8 {
	m := x.p.Machine
	n := m.NumDevices()
	cost := make([][]int64, n) // of a device, by the name that it takes
	for d := range cost {
		cost[d] = make([]int64, n)
		for o := range n {
			if !m.Devices[d].SameFigures(&m.Devices[o]) {
				cost[d][o] = math.MaxInt64 / int64(4*n)
			}
		}
	}
	for i, d := range device {
		if o := x.old[i]; o != Lost {
			cost[d][o] -= int64(x.p.Graph.Op(graph.OpID(i)).Resident)
		}
	}
	to := assign(cost)
	out := make([]uint8, len(device))
	for i, d := range device {
		out[i] = uint8(to[d])
	}
	if x.p.Evaluate(device).Better(x.p.Evaluate(out)) && x.moved(device) <= x.limit {
		return slices.Clone(device)
	}
	return out
}
