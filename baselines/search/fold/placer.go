// Package fold owns the search of large graphs that repeat themselves: it decides on
// blocks, each with all its repetitions (unit.Fold), anneals on a graph of these, and
// unfolds what it finds.
package fold

import (
	"context"
	"fmt"

	"placer/baselines/budget"
	"placer/baselines/search/anneal"
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

// rounds is how often the folded graph is annealed: first from nothing, then from the best
// that the whole graph has confirmed. Each takes twice as long as the one before it.
const rounds = 3

// Place searches until the budget is spent or ctx ends. A step of the folded graph is
// charged to a budget in evaluations by its share of the ops; the outcome counts
// evaluations of the problem alone and notes the others. It decides on placement by the
// length of the step, under the problem's priority, and gives up where a graph does not
// fold or something else is asked for.
func (a Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	if p.Objective.Normal() != plan.Step || !p.Decides(plan.Place) {
		return nil, budget.Unavailable("only steps fold")
	}
	f, err := newFolded(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name(), err)
	}
	track := budget.New(ctx, p, a.Name())
	device := make([]uint8, p.Graph.NumOps())
	f.expand(f.problem.Units.Blocks(f.problem.Evaluator.OpSeconds(0), p.Machine.NumDevices()), device)
	track.Try(device)
	started, folded := budget.Now(p), 0.0 // evaluations of the folded graph, in those of the problem
	var best []uint8                      // [nodes]
	for round := 0; round < rounds && !track.Done(); round++ {
		q := *f.problem
		q.Seed, q.Clock = plan.StreamSeed(p.Seed, fmt.Sprint(round)), p.Clock
		part := float64(int(1)<<round) / float64(int(1)<<rounds-int(1)<<round) // of what is left
		if n := p.Budget.Evaluations; n > 0 {
			left := float64(n) - float64(track.Evaluations()) - folded - 1
			if q.Budget.Evaluations = int(part * left / f.share); q.Budget.Evaluations < 1 {
				break
			}
		}
		if s := p.Budget.Seconds; s > 0 && p.Clock != nil {
			if q.Budget.Seconds = part * (s - (p.Clock() - started)); q.Budget.Seconds <= 0 {
				break
			}
		}
		method := anneal.Placer{Workers: 1}
		if best != nil {
			method.Starts = [][]uint8{best}
		}
		out, err := method.Place(ctx, &q)
		if err != nil {
			break // ctx has ended
		}
		folded += float64(out.Evaluations) * f.share
		f.evaluations += out.Evaluations
		before := track.Best()
		f.expand(out.Device, device)
		if s := track.Try(device); best == nil || s.Better(before) {
			best = out.Device
		}
	}
	track.Note("beside its evaluations, %d of %d blocks folded to %d nodes", f.evaluations, f.blocks, f.coarse.Graph.NumOps())
	return track.Outcome()
}

// folded is a problem with its folding.
type folded struct {
	coarse      *unit.Coarsened
	problem     *plan.Problem // of coarse
	blocks      int
	share       float64 // of the ops that coarse has nodes
	evaluations int
}

func newFolded(p *plan.Problem) (*folded, error) {
	parts, err := unit.Fold(p.Graph, p.Evaluator.OpSeconds(0), blockShare, mostRepetitions)
	if err != nil {
		return nil, err
	}
	c, q, err := schedule.CoarseProblem(p, parts.Parts)
	if err != nil {
		return nil, err
	}
	f := &folded{coarse: c, problem: q, blocks: parts.Blocks, share: float64(c.Graph.NumOps()) / float64(p.Graph.NumOps())}
	if f.share > mostNodes {
		return nil, budget.Unavailable(fmt.Sprintf("%d ops fold to %d nodes, too many to be worth it", p.Graph.NumOps(), c.Graph.NumOps()))
	}
	q.Units = parts.Units(c)
	return f, nil
}

// expand writes the placement of the ops whose nodes are on device node, [nodes].
func (f *folded) expand(node, device []uint8) {
	for v, ops := range f.coarse.Ops {
		for _, i := range ops {
			device[i] = node[graph.OpID(v)]
		}
	}
}
