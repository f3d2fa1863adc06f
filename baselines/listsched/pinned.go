package listsched

import (
	"context"
	"fmt"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// Pinned is "pinned": HEFT and ETF on chains, segments and cells in turn around ops that are
// somewhere already, the best kept. A unit and its counterpart of which ops are pinned are
// scheduled where most of those are, by bytes; pinned ops stay in any case.
type Pinned struct {
	// Device is where each op is, [N], or Free.
	Device []uint8
	Free   uint8
}

var _ plan.Placer = Pinned{}

// Name returns "pinned".
func (Pinned) Name() string { return "pinned" }

// Kind returns plan.Baseline.
func (Pinned) Kind() plan.Kind { return plan.Baseline }

// Place evaluates six placements at most.
func (x Pinned) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	track := budget.New(ctx, p, x.Name())
	device := make([]uint8, p.Graph.NumOps())
	for _, l := range []unit.Level{unit.Chain, unit.Segment, unit.Cell} {
		for _, run := range []func(*gapFilling, context.Context) bool{(*gapFilling).heft, (*gapFilling).etf} {
			if track.Evaluations() > 0 && track.Done() {
				return track.Outcome()
			}
			s, c, err := newCoarsened(p, l)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", x.Name(), err)
			}
			x.pin(s, c, p.Graph)
			if !run(s, ctx) {
				return track.Outcome()
			}
			of := s.placement()
			for i, v := range c.Of {
				device[i] = of[v]
				if x.Device[i] != x.Free {
					device[i] = x.Device[i]
				}
			}
			track.Try(device)
		}
	}
	return track.Outcome()
}

// pin binds the groups of s, of which c has the nodes, that have pinned ops of g.
func (x Pinned) pin(s *gapFilling, c *unit.Coarsened, g *graph.Graph) {
	held := make([][]units.Bytes, s.ops.NumUnits()) // by device, and one for each op, so that bytes decide
	for i, v := range c.Of {
		d := x.Device[i]
		if d == x.Free {
			continue
		}
		u := s.ops.Of[v]
		if held[u] == nil {
			held[u] = make([]units.Bytes, s.d)
		}
		held[u][d] += 1 + g.Op(graph.OpID(i)).Resident
	}
	for u, bytes := range held {
		most := none
		for d, b := range bytes {
			if b > 0 && (most == none || b > bytes[most]) {
				most = d
			}
		}
		if most != none {
			s.bind(int32(u), most)
		}
	}
	for v, source := range s.source { // what reads them has to know where they are
		if f := s.fixed[s.ops.Of[v]]; source && f != none && s.device[v] == none {
			s.place(graph.OpID(v), f, false)
		}
	}
	s.bound = s.bound[:0] // ETF has offered nothing yet
}
