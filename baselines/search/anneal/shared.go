package anneal

import (
	"sync"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// Shared is what runs on the same units of one graph have in common, for any number of
// runs at once. The first run that needs a part makes it. The zero value is ready.
type Shared struct {
	cells, ops, alike part[*neighbourhood]
	coarse            part[*coarse]
	listing           part[*listing]
}

// part is made once.
type part[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (x *part[T]) get(make func() (T, error)) (T, error) {
	x.once.Do(func() { x.value, x.err = make() })
	return x.value, x.err
}

// coarse is the coarsened graph of cells.
type coarse struct {
	proto *objective // nil where the coarsened graph saves too little
	nodes int
}

// coarsening is unit.Coarsen, or CoarsenFinely.
type coarsening func(*graph.Graph, *unit.Partition, units.Bytes) (*unit.Coarsened, error)

// mostNodes is the largest coarsened graph worth searching on, as a share of the
// graph's ops.
const mostNodes = 0.4

// newCoarse returns the graph that coarsen makes of p's cells; see coarseObjective.
func newCoarse(p *plan.Problem, coarsen coarsening, tell func(*unit.Coarsened, *plan.Problem)) (*coarse, error) {
	if p.Objective.Normal() != plan.Step { // the coarsened graph is simulated: it knows step times alone
		return &coarse{}, nil
	}
	a, nodes, err := coarseObjective(p, p.Units.Levels[unit.Cell], coarsen, tell)
	if err != nil {
		return nil, err
	}
	if a.share > mostNodes {
		a = nil
	}
	return &coarse{a, nodes}, nil
}

// newNearCoarse returns the fine coarsened graph of p's cells, whose step is nearest to p's, or
// where that saves too little the other; its proto is nil where both do.
func newNearCoarse(p *plan.Problem) (*coarse, error) {
	c, err := newCoarse(p, unit.CoarsenFinely, nil)
	if err == nil && c.proto == nil {
		c, err = newCoarse(p, unit.Coarsen, nil)
	}
	return c, err
}

func (s *Shared) cellsOf(p *plan.Problem) *neighbourhood {
	t, _ := s.cells.get(func() (*neighbourhood, error) { return within(p, unit.Cell, unit.Chain), nil })
	return t
}

func (s *Shared) opsOf(p *plan.Problem) *neighbourhood {
	t, _ := s.ops.get(func() (*neighbourhood, error) { return within(p, unit.Op, unit.Cell), nil })
	return t
}

func (s *Shared) alikeOf(p *plan.Problem) *neighbourhood {
	t, _ := s.alike.get(func() (*neighbourhood, error) {
		of, n := alike(p)
		return newNeighbourhood(p, unit.Op, of, n), nil
	})
	return t
}

// within returns the neighbourhood of the units of a level in those of a coarser one.
func within(p *plan.Problem, fine, coarse unit.Level) *neighbourhood {
	return newNeighbourhood(p, fine, p.Units.Parents(fine, coarse), p.Units.Levels[coarse].NumUnits())
}

func (s *Shared) coarseOf(p *plan.Problem, tell func(*unit.Coarsened, *plan.Problem)) (*coarse, error) {
	return s.coarse.get(func() (*coarse, error) { return newCoarse(p, unit.Coarsen, tell) })
}

func (s *Shared) listingOf(p *plan.Problem) (*listing, error) {
	return s.listing.get(func() (*listing, error) { return newListing(p, s.cellsOf(p)) })
}
