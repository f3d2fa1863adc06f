package sequential

import (
	"math"
	"slices"
	"sync"

	"placer/graph/unit"
	"placer/plan"
)

// levels are the granularities at which a policy decides, from fine to coarse. Its
// features mean the same at all of them. Rollouts at several levels differ more than
// rollouts at one: which level suits depends on the graph.
var levels = []unit.Level{unit.Cell, unit.Segment, unit.Chain}

// timeStep is the index, behind those of levels, of an unrolled network's runs of a
// time step (unit.ByTimeStep). No policy was trained on such units; they are like
// segments to it.
const timeStep = 3

// featuresVersion changes whenever a feature changes its meaning or place; policy
// files carry it.
const featuresVersion = 2

// Features is a problem as a policy reads it, at every granularity. What a granularity
// needs is computed when it is asked for.
type Features struct {
	problem  *plan.Problem
	at       []func() *instance // [levels], and that by time steps where there are such
	summary  []float32          // of the cells that training knows, without partial gradients
	decoders map[*instance]*taskDecoder
}

// instance returns the problem at level l, the index of one of levels or timeStep.
func (f *Features) instance(l int) *instance { return f.at[l]() }

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

// NewFeatures returns p's, with partial gradients apart, and by time steps, too.
func NewFeatures(p *plan.Problem) (*Features, error) {
	q := *p
	q.Units = p.Units.WithPartialGradients(p.Graph, p.Evaluator.OpSeconds(0))
	f, c, err := lazyFeatures(&q)
	if err != nil {
		return nil, err
	}
	known := f
	if plain := q.Units.WithoutPartialGradients(); plain != q.Units {
		asTrained := *p
		asTrained.Units = plain
		if known, err = plainFeatures(&asTrained); err != nil {
			return nil, err
		}
	}
	f.summary = known.instance(0).summary()
	byTimeStep := q
	if byTimeStep.Units = q.Units.ByTimeStep(p.Graph); byTimeStep.Units != nil {
		f.at = append(f.at, sync.OnceValue(func() *instance {
			c := *c
			c.block = blocks(&byTimeStep)
			s := newInstance(&byTimeStep, c, unit.Segment)
			s.name = timeStepName
			return s
		}))
	}
	return f, nil
}

// plainFeatures returns those of p with its units as they are, as training reads it.
func plainFeatures(p *plan.Problem) (*Features, error) {
	f, _, err := lazyFeatures(p)
	return f, err
}

// lazyFeatures returns the features of p, and what its levels have in common.
func lazyFeatures(p *plan.Problem) (*Features, *coarse, error) {
	c, err := coarsen(p)
	if err != nil {
		return nil, nil, err
	}
	f := &Features{problem: p}
	for _, l := range levels {
		f.at = append(f.at, sync.OnceValue(func() *instance { return newInstance(p, c, l) }))
	}
	return f, &c, nil
}

// feature is a number that the network reads, as a function of facts T. Features
// name no op kind and carry no unit of measure, so they hold for graphs of any
// family and size.
type feature[T any] struct {
	name, doc string
	of        func(*T) float32
}

// write writes the features of x in the order of the table.
func write[T any](table []feature[T], x *T, to []float32) {
	to = to[:len(table)]
	for i := range table {
		to[i] = table[i].of(x)
	}
}

// indexOf returns the position of a feature in its table.
func indexOf[T any](table []feature[T], name string) int {
	return slices.IndexFunc(table, func(f feature[T]) bool { return f.name == name })
}

// widest bounds squashed features.
const widest = 5

// squash keeps the order of x and its scale near 0, and grows like a root, up to widest.
func squash(x float64) float32 {
	y := math.Sqrt(1+2*math.Abs(x)) - 1
	if y > widest {
		y = widest
	}
	if x < 0 {
		y = -y
	}
	return float32(y)
}

// indicator is 1 for true and 0 for false.
func indicator(b bool) float32 {
	if b {
		return 1
	}
	return 0
}
