package sequential

import (
	"fmt"
	"math"
	"sync"

	"placer/baselines/search/anneal"
	"placer/graph/unit"
	"placer/plan"
)

// level is a granularity at which a policy decides. Its features mean the same at all of
// them. Rollouts at several levels differ more than rollouts at one: which level suits
// depends on the graph.
type level int

// The levels: those of levels, from fine to coarse, and an unrolled network's runs of a
// time step (unit.ByTimeStep). No policy was trained on the last; they are like segments
// to it.
const (
	atCells level = iota
	atSegments
	atChains
	atTimeSteps
)

// levels are those that every graph has.
var levels = [...]unit.Level{atCells: unit.Cell, atSegments: unit.Segment, atChains: unit.Chain}

// featuresVersion changes whenever a feature changes its meaning or place; policy
// files carry it.
const featuresVersion = 2

// Features is a problem as a policy reads it, at every granularity. What a granularity
// needs is computed when it is asked for, and kept. It is not safe for concurrent use.
type Features struct {
	problem *plan.Problem
	coarse  *coarse            // of all granularities
	units   []int              // of each granularity
	at      []func() *instance // by level; that of time steps is missing where there are none
	summary func() []float32   // of the cells that training knows, without partial gradients
	// steps returns the balanced cut by time steps, [N]; nil where there are none.
	steps    func() []uint8
	decoders map[*instance]*taskDecoder
	sketch   *anneal.Sketch // that a zero-shot placement used; nil before, and where there is none
}

// Note says what a zero-shot placement took beside its evaluations; empty where it took
// nothing.
func (f *Features) Note() string {
	if f.sketch == nil {
		return ""
	}
	return f.sketch.Note()
}

// instance returns the problem at level l.
func (f *Features) instance(l level) *instance { return f.at[l]() }

// cut returns how the balanced cut by time steps compares with that by layers: the
// logarithm of when their own schedules end, one over the other; 0 without time steps.
func (f *Features) cut() float64 {
	if f.steps == nil {
		return 0
	}
	s := f.instance(atCells)
	x := newState(s)
	return math.Log(x.scheduled(f.steps()) / x.scheduled(f.coarse.block))
}

// decision returns that of a placement, [N], at level l under p.
func (f *Features) decision(p *Policy, l level, device []uint8) plan.Decision {
	if !f.problem.Decides(plan.Schedule) && !f.problem.Decides(plan.Fuse) {
		return plan.Decision{Device: device, Priority: f.problem.Priority, Fusion: f.problem.Fusion}
	}
	s := f.instance(l)
	return f.decoder(s).decide(device, p.levels(s))
}

// decoder returns the decoder of the problem's tasks for s.
func (f *Features) decoder(s *instance) *taskDecoder {
	if f.decoders == nil {
		f.decoders = map[*instance]*taskDecoder{}
	}
	if f.decoders[s] == nil {
		f.decoders[s] = newTaskDecoder(s, f.problem.Tasks)
	}
	return f.decoders[s]
}

// NewFeatures returns those of p, with partial gradients apart, by time steps too where the
// graph is unrolled. It keeps p. It reports cells that cannot be coarsened to nodes.
func NewFeatures(p *plan.Problem) (*Features, error) {
	q := *p
	q.Units = p.Units.WithPartialGradients(p.Graph, p.Evaluator.OpSeconds(0))
	f, err := plainFeatures(&q)
	if err != nil {
		return nil, err
	}
	f.summary = sync.OnceValue(func() []float32 {
		plain := q.Units.WithoutPartialGradients()
		if plain == q.Units {
			return f.instance(atCells).summary()
		}
		asTrained := *p
		asTrained.Units = plain
		known, err := plainFeatures(&asTrained)
		if err != nil {
			panic(fmt.Sprintf("sequential: a graph is coarsened to parts of its cells, but not to these: %v", err))
		}
		return known.instance(atCells).summary()
	})
	byTimeStep := q
	if byTimeStep.Units = q.Units.ByTimeStep(p.Graph); byTimeStep.Units != nil {
		f.units = append(f.units, byTimeStep.Units.Levels[unit.Segment].NumUnits())
		f.steps = sync.OnceValue(func() []uint8 { return blocks(&byTimeStep) })
		f.at = append(f.at, sync.OnceValue(func() *instance {
			c := *f.coarse
			c.block = f.steps()
			s := newInstance(&byTimeStep, c, unit.Segment)
			s.name = timeStepName
			return s
		}))
	}
	return f, nil
}

// plainFeatures returns those of p with its units as they are, as training reads it.
func plainFeatures(p *plan.Problem) (*Features, error) {
	c, err := coarsen(p)
	if err != nil {
		return nil, err
	}
	f := &Features{problem: p, coarse: &c}
	for _, l := range levels {
		f.units = append(f.units, p.Units.Levels[l].NumUnits())
		f.at = append(f.at, sync.OnceValue(func() *instance { return newInstance(p, c, l) }))
	}
	return f, nil
}
