// Package fold owns the search of large graphs that repeat themselves: it decides on
// blocks, each with all its repetitions (unit.Fold), anneals on a graph of these, and
// unfolds what it finds.
package fold

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"placer/baselines/budget"
	"placer/baselines/search/anneal"
	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
)

// Placer places blocks of repeated layers and micro-batches (or time steps).
type Placer struct{}

var _ plan.Placer = Placer{}

// Name returns "fold".
func (Placer) Name() string { return "fold" }

// Kind returns plan.Search.
func (Placer) Kind() plan.Kind { return plan.Search }

const (
	// blockShare is the share of the step's time that a block stands for: the fourth part
	// of a layer of 80, a hundredth of what a device does on 4.
	blockShare = 1.0 / 320
	// mostRepetitions bounds the repetitions of a block.
	mostRepetitions = 64
	// mostNodes is the largest folded graph worth searching on, as a share of the ops.
	mostNodes = 0.4
)

// rounds is how often the folded graph is annealed, always from the best that the whole
// graph has confirmed. Each round takes twice as long as the one before it.
const rounds = 3

// coolFolded leaves out annealing's own coarsened graph, in which all repetitions of a block
// are one node.
const coolFolded = 2

// Place searches until the budget is spent or ctx ends. A step of the folded graph is
// charged to a budget in evaluations by its share of the ops; the outcome counts
// evaluations of the problem alone and notes the others. It gives up where a graph does not
// fold or something else than the step is asked for.
//
// Where the problem asks for priorities, there are two to choose from: the problem's own,
// and by turns, which has every device run what it can of an earlier micro-batch first. By
// the longest path alone devices take all micro-batches through their blocks together, and
// the next device waits for the first of them as long as for the last. Where it asks for a
// fusion, the choice is between none and all that can be.
func (a Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	if p.Objective.Normal() != plan.Step || !p.Decides(plan.Place) {
		return nil, budget.Unavailable("only steps fold")
	}
	f, err := newFolded(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name(), err)
	}
	s := &search{folded: f, p: p, track: budget.New(ctx, p, a.Name()), started: budget.Now(p), device: make([]uint8, p.Graph.NumOps())}
	stages := f.stages(p.Machine.NumDevices())
	s.best = stages[0]
	s.try(s.best)
	if turns := f.byTurns(); p.Decides(plan.Schedule) && p.Priority != nil && !s.track.Done() {
		before := s.track.Best()
		if s.under.Priority = f.ranks(turns, p.Priority); s.try(s.best).Better(before) {
			f.problem.Priority = turns
		} else {
			s.under.Priority = nil
		}
	}
	if p.Decides(plan.Fuse) && !s.track.Done() {
		before := s.track.Best()
		if s.under.Fusion = fusion.All(p.Graph.NumOps()); !s.try(s.best).Better(before) {
			s.under.Fusion = nil
		}
	}
	for _, node := range stages[1:] {
		if s.track.Done() {
			break
		}
		if before := s.track.Best(); s.try(node).Better(before) {
			s.best = node
		}
	}
	for round := 0; round < rounds && !s.track.Done(); round++ {
		if !s.anneal(ctx, round) {
			break
		}
	}
	s.track.Note("in addition, %d evaluations of %d blocks folded to %d nodes", s.evaluations, f.blocks, f.coarse.Graph.NumOps())
	return s.track.Outcome()
}

// search is the state of one Place.
type search struct {
	*folded
	p           *plan.Problem
	track       *budget.Tracker
	started     float64
	evaluations int           // of the folded graph
	under       plan.Decision // priority and fusion of what is tried
	best        []uint8       // [nodes] the best that the whole graph has confirmed
	device      []uint8       // [N] scratch
}

// try evaluates the placement of nodes on the whole graph.
func (s *search) try(node []uint8) plan.Score {
	s.expand(node, s.device)
	d := s.under
	d.Device = s.device
	return s.track.TryDecision(d)
}

// anneal anneals the folded graph for its part of what is left, from the best, and tries
// what that comes to. It is false where nothing is left.
func (s *search) anneal(ctx context.Context, round int) bool {
	q := *s.problem
	q.Seed, q.Clock = plan.StreamSeed(s.p.Seed, fmt.Sprint(round)), s.p.Clock
	part := float64(int(1)<<round) / float64(int(1)<<rounds-int(1)<<round)
	if n := s.p.Budget.Evaluations; n > 0 {
		left := float64(n-s.track.Evaluations()-1) - float64(s.evaluations)*s.share
		if q.Budget.Evaluations = int(part * left / s.share); q.Budget.Evaluations < 1 {
			return false
		}
	}
	if b := s.p.Budget.Seconds; b > 0 && s.p.Clock != nil {
		if q.Budget.Seconds = part * (b - (s.p.Clock() - s.started)); q.Budget.Seconds <= 0 {
			return false
		}
	}
	out, err := anneal.Placer{Starts: [][]uint8{s.best}, Cool: coolFolded, Workers: 1}.Place(ctx, &q)
	if err != nil {
		return false
	}
	s.evaluations += out.Evaluations
	if before := s.track.Best(); s.try(out.Device).Better(before) {
		s.best = out.Device
	}
	return true
}

// folded is a problem with its folding.
type folded struct {
	folding *unit.Folding
	coarse  *unit.Coarsened
	problem *plan.Problem // of coarse
	blocks  int
	share   float64 // of the ops that coarse has nodes
}

func newFolded(p *plan.Problem) (*folded, error) {
	parts, err := unit.Fold(p.Graph, p.Evaluator.OpSeconds(0), blockShare, mostRepetitions)
	if err != nil {
		return nil, err
	}
	c, err := unit.Coarsen(p.Graph, parts.Parts, 0) // hundreds of tensors stay in a block
	if err != nil {
		return nil, err
	}
	q, err := schedule.CoarseProblem(p, c)
	if err != nil {
		return nil, err
	}
	f := &folded{folding: parts, coarse: c, problem: q, blocks: parts.Blocks, share: float64(c.Graph.NumOps()) / float64(p.Graph.NumOps())}
	if f.share > mostNodes {
		return nil, budget.Unavailable(fmt.Sprintf("%d ops fold to %d nodes, too many to be worth it", p.Graph.NumOps(), c.Graph.NumOps()))
	}
	q.Units = parts.Units(c)
	return f, nil
}

// stages returns pipelines of the blocks on d devices, of one, two and four chunks each,
// [nodes]: the forward pass is cut into stages of even time, as many as devices times
// chunks, which go to the devices in turn.
func (f *folded) stages(d int) [][]uint8 {
	seconds, block := f.problem.Evaluator.OpSeconds(0), f.folding.Block
	load, total := make([]float64, f.blocks), 0.0
	for v, s := range seconds {
		load[block[f.coarse.Unit(graph.OpID(v))]] += s
		total += s
	}
	var all [][]uint8
	for _, c := range [...]int{1, 2, 4} {
		of, before := make([]uint8, f.blocks), 0.0
		for b, s := range load {
			of[b] = uint8(min(c*d-1, int(float64(c*d)*(before+s/2)/total)) % d)
			before += s
		}
		node := make([]uint8, len(seconds))
		for v := range node {
			node[v] = of[block[f.coarse.Unit(graph.OpID(v))]]
		}
		all = append(all, node)
	}
	return all
}

// expand writes the placement of the ops whose nodes are on device node, [nodes].
func (f *folded) expand(node, device []uint8) {
	for v, ops := range f.coarse.Ops {
		for _, i := range ops {
			device[i] = node[v]
		}
	}
}

// byTurns returns the priority of nodes by their turn, and by the folded problem's within
// it, [nodes].
func (f *folded) byTurns() []int32 {
	order := make([]int32, f.coarse.Graph.NumOps())
	for v := range order {
		order[v] = int32(v)
	}
	turn := func(v int32) int32 { return f.folding.Turn[f.coarse.Unit(graph.OpID(v))] }
	slices.SortFunc(order, func(a, b int32) int {
		c := cmp.Compare(turn(a), turn(b))
		if f.problem.Priority != nil {
			c = cmp.Or(c, cmp.Compare(f.problem.Priority[a], f.problem.Priority[b]))
		}
		return cmp.Or(c, cmp.Compare(a, b))
	})
	return inverse(order)
}

// ranks returns the priority of ops by that of their nodes, and by within, [N], in a node.
func (f *folded) ranks(node, within []int32) []int32 {
	order := make([]int32, len(within))
	for i := range order {
		order[i] = int32(i)
	}
	of := f.coarse.Of
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(node[of[a]], node[of[b]]), cmp.Compare(within[a], within[b]))
	})
	return inverse(order)
}

// inverse returns the place of each number of order.
func inverse(order []int32) []int32 {
	at := make([]int32, len(order))
	for k, i := range order {
		at[i] = int32(k)
	}
	return at
}
