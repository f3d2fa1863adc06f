package fit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"placer/baselines/listsched"
	"placer/baselines/rules"
	"placer/graph"
	"placer/graph/remat"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// Allowed says which ways there are to give up activations.
type Allowed struct{ Recompute, Offload bool }

// Candidate is a placement with changes to the graph that was given.
type Candidate struct {
	Method string // that placed the graph as it was given
	Way    string // "as it is", "recompute", "offload" or "both"
	remat.Changes
	Score plan.Score
	// Missing are the bytes that each device lacks, [D].
	Missing []units.Bytes

	base     []uint8 // [N] of the given graph
	priority []int32 // of the changed graph's ops; nil is FIFO
}

// Result is what Fit found.
type Result struct {
	// Best fits, if anything does; else it is what lacks least.
	Best *Candidate
	// Tried is, for each placement and way, the best of it, in the order of trying.
	Tried       []*Candidate
	Layers      int // that can give up activations
	Evaluations int
	// Notes are remarks for the reader.
	Notes []string
	// Derived is Best's graph, Problem its problem and Plan its plan.
	Derived *remat.Derived
	Problem *problem.Problem
	Plan    *plan.Plan
}

// fitter is a search under way.
type fitter struct {
	ctx     context.Context
	source  problem.Source
	m       *hw.Machine
	how     problem.Options
	layers  *remat.Layers
	host    int
	allowed Allowed

	evaluations, most int
	known             map[string]*judged
}

// judged is the judgement of one set of changes under one placement.
type judged struct {
	score    plan.Score
	peak     []units.Bytes
	priority []int32
}

// ErrTimes says that the graph comes with times of its own, which the ops that changes
// add do not have.
var ErrTimes = errors.New("the graph's times come from its file, which has none for ops that are added to it")

// Fit places the graph of s on m so that it fits, with changes as far as they are
// needed, and as short as it can within so many evaluations. Placements of the graph as
// it is come from rules of thumb and a list scheduler; where one does not fit, layers
// on the devices that lack memory change, as many as it takes, those first whose bytes
// cost least; last, layers of the best candidate change back, or the other way, where
// that makes it shorter. An error says that there is no candidate; one that does not
// fit is none.
func Fit(ctx context.Context, s problem.Source, m *hw.Machine, how problem.Options, allowed Allowed, most int) (*Result, error) {
	if s.Times != nil || s.Seconds != nil {
		return nil, fmt.Errorf("graph %s: %w", s.Name(), ErrTimes)
	}
	p, err := problem.New(s, m, how)
	if err != nil {
		return nil, err
	}
	f := &fitter{ctx: ctx, source: s, m: m, how: how, layers: remat.Find(s.Graph), host: m.Host(), allowed: allowed, most: most, known: map[string]*judged{}}
	if f.host < 0 {
		f.allowed.Offload = false
	}
	r := &Result{Layers: f.count()}
	var placed []*plan.Outcome
	for _, method := range []plan.Placer{rules.Single(), rules.Expert(), listsched.Rules(), listsched.MTOPO(), rules.Offload()} {
		o, err := method.Place(ctx, &p.Problem)
		if err != nil {
			continue // a method that has no placement here
		}
		r.Evaluations += o.Evaluations
		if slices.ContainsFunc(placed, func(x *plan.Outcome) bool { return slices.Equal(x.Device, o.Device) }) {
			continue
		}
		placed = append(placed, o)
		ways, err := f.ways(method.Name(), o.Device)
		if err != nil {
			return nil, err
		}
		r.Tried = append(r.Tried, ways...)
	}
	if len(r.Tried) == 0 {
		return nil, fmt.Errorf("no method placed graph %s: %w", s.Name(), ctx.Err())
	}
	best := r.Tried[0]
	for _, c := range r.Tried {
		if c.Score.Better(best.Score) {
			best = c
		}
	}
	if r.Best, err = f.refine(best); err != nil {
		return nil, err
	}
	if best.Way != "as it is" || !best.Score.Feasible() {
		switch {
		case r.Layers == 0:
			r.Notes = append(r.Notes, "no layer has gradients that come later than its forward pass: there is nothing to recompute or offload (is it a training step?)")
		case f.host < 0 && allowed.Offload:
			r.Notes = append(r.Notes, "the machine has no CPU to offload to")
		}
	}
	r.Evaluations += f.evaluations
	return r, r.complete(f)
}

// count returns how many layers can change.
func (f *fitter) count() (n int) {
	for k := range f.layers.Saved {
		if f.layers.Can(int32(k)) {
			n++
		}
	}
	return n
}

// complete builds the plan of the best candidate.
func (r *Result) complete(f *fitter) (err error) {
	if r.Derived, err = f.layers.Derive(r.Best.Changes); err != nil {
		return err
	}
	s := f.source
	s.Graph = r.Derived.Graph
	if r.Problem, err = problem.New(s, f.m, f.how); err != nil {
		return err
	}
	device := r.Derived.Place(r.Best.base, uint8(max(0, f.host)))
	r.Plan = &plan.Plan{Graph: s.Graph.Hash(), Machine: f.m.Name, Method: "fit " + r.Best.Method, Decision: plan.Decision{Device: device, Priority: r.Best.priority}}
	return nil
}

// ways returns the candidates of one placement.
func (f *fitter) ways(method string, device []uint8) (all []*Candidate, err error) {
	asIs := &Candidate{Method: method, Way: "as it is", base: slices.Clone(device)}
	if err := f.judge(asIs); err != nil {
		return nil, err
	}
	all = append(all, asIs)
	if asIs.Score.Feasible() {
		return all, nil
	}
	type way struct {
		name string
		ok   bool
		// recompute says of the n-th layer of a device to change whether it is computed
		// again; else it goes to the host.
		recompute func(n int) bool
	}
	for _, w := range []way{
		{"recompute", f.allowed.Recompute, func(int) bool { return true }},
		{"offload", f.allowed.Offload, func(int) bool { return false }},
		{"both", f.allowed.Recompute && f.allowed.Offload, func(n int) bool { return n%2 == 0 }},
	} {
		if !w.ok || f.over() {
			continue
		}
		c := &Candidate{Method: method, Way: w.name, base: asIs.base, Score: asIs.Score, Missing: asIs.Missing}
		if err := f.grow(c, w.recompute); err != nil {
			return nil, err
		}
		if !c.None() {
			all = append(all, c)
		}
	}
	return all, nil
}

func (f *fitter) over() bool { return f.evaluations >= f.most || f.ctx.Err() != nil }

// grow changes layers of the devices that lack memory until c fits or no layer of such
// a device is left.
func (f *fitter) grow(c *Candidate, recompute func(n int) bool) error {
	order := f.order(c.base)
	taken := make([]int, f.m.NumDevices())
	for !c.Score.Feasible() && !f.over() {
		grown := false
		for d, lacks := range c.Missing {
			var got units.Bytes
			for ; lacks > 0 && got < lacks && taken[d] < len(order[d]); taken[d]++ {
				k := order[d][taken[d]]
				if recompute(taken[d]) {
					c.Recompute = append(c.Recompute, k)
				} else {
					c.Offload = append(c.Offload, k)
				}
				got += f.saved(k)
				grown = true
			}
		}
		if !grown {
			return nil
		}
		slices.Sort(c.Recompute)
		slices.Sort(c.Offload)
		if err := f.judge(c); err != nil {
			return err
		}
	}
	return nil
}

func (f *fitter) saved(k int32) (bytes units.Bytes) {
	for _, t := range f.layers.Saved[k] {
		bytes += f.source.Tensor(t).Bytes
	}
	return bytes
}

// order returns, for each device, the layers whose saved tensors are there, those first
// whose forward pass takes the least time for each byte that it saves.
func (f *fitter) order(device []uint8) [][]int32 {
	order := make([][]int32, f.m.NumDevices())
	work := make([]float64, len(f.layers.Saved))
	for i := range graph.OpID(f.source.NumOps()) {
		if k := f.layers.Of[i]; k > 0 && f.source.Op(i).Phase == graph.Forward {
			work[k] += float64(f.source.Op(i).FLOPs) + float64(f.source.Op(i).Bytes)
		}
	}
	for k := range f.layers.Saved {
		if !f.layers.Can(int32(k)) {
			continue
		}
		held := make([]units.Bytes, len(order))
		for _, t := range f.layers.Saved[k] {
			held[device[f.source.Tensor(t).Producer]] += f.source.Tensor(t).Bytes
		}
		d := slices.Index(held, slices.Max(held))
		order[d] = append(order[d], int32(k))
	}
	for _, ks := range order {
		slices.SortStableFunc(ks, func(a, b int32) int {
			x, y := work[a]/float64(f.saved(a)), work[b]/float64(f.saved(b))
			switch {
			case x < y*(1-1e-3):
				return -1
			case y < x*(1-1e-3):
				return 1
			}
			return 0
		})
	}
	return order
}

// judge simulates c under the scheduler, in the graph's order, and first come first
// served, and keeps the best of these: the critical path puts the gradients of weights
// off to the end, with all that they read, the graph's order has them in turn.
func (f *fitter) judge(c *Candidate) error {
	key := fmt.Sprint(c.Method, c.Recompute, c.Offload)
	j := f.known[key]
	if j == nil {
		d, err := f.layers.Derive(c.Changes)
		if err != nil {
			return err
		}
		s := f.source
		s.Graph = d.Graph
		x, priority, err := problem.Simulator(s, f.m, f.how)
		if err != nil {
			return err
		}
		f.evaluations++
		device := d.Place(c.base, uint8(max(0, f.host)))
		inTurn := make([]int32, len(device))
		for i := range inTurn {
			inTurn[i] = int32(i)
		}
		for _, priority := range [][]int32{priority, inTurn, nil} {
			if score := x.Evaluate(plan.Decision{Device: device, Priority: priority}); j == nil || score.Better(j.score) {
				j = &judged{score, x.Peaks(), priority}
			}
		}
		f.known[key] = j
	}
	c.Score, c.priority, c.Missing = j.score, j.priority, make([]units.Bytes, len(j.peak))
	for d, b := range j.peak {
		c.Missing[d] = max(0, b-f.m.Devices[d].Memory)
	}
	return nil
}

// refine changes single layers of c back, or the other way, while that makes it better.
func (f *fitter) refine(c *Candidate) (*Candidate, error) {
	for better := true; better && !f.over(); {
		better = false
		for _, k := range slices.Concat(c.Recompute, c.Offload) {
			for _, x := range f.neighbours(c, k) {
				if f.over() {
					return c, nil
				}
				if err := f.judge(x); err != nil {
					return nil, err
				}
				if x.Score.Better(c.Score) {
					c, better = x, true
					break
				}
			}
		}
	}
	return c, nil
}

// neighbours returns c with layer k as it was, and given up the other way.
func (f *fitter) neighbours(c *Candidate, k int32) (all []*Candidate) {
	without := func(ks []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(ks), func(x int32) bool { return x == k })
	}
	back := *c
	again := slices.Contains(c.Recompute, k)
	if !again && !slices.Contains(c.Offload, k) {
		return nil // changed back before
	}
	back.Recompute, back.Offload = without(c.Recompute), without(c.Offload)
	other := back
	switch {
	case again && f.allowed.Offload:
		other.Offload = append(slices.Clone(back.Offload), k)
	case !again && f.allowed.Recompute:
		other.Recompute = append(slices.Clone(back.Recompute), k)
	default:
		return []*Candidate{&back}
	}
	slices.Sort(other.Recompute)
	slices.Sort(other.Offload)
	other.Way, back.Way = "both", c.Way
	return []*Candidate{&back, &other}
}
