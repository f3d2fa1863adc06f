package workloads

import (
	"errors"
	"fmt"
	"strconv"

	"placer/graph"
	"placer/graph/strategy"
	"placer/graph/train"
	"placer/internal/faults"
)

// model is a family of graphs with its settings.
type model interface {
	// settings lists what a textual form can set, with the range of each.
	settings() []setting
	// faults are those that no range of a single setting shows.
	faults() faults.List
	// depth is the number of layers that ops are annotated with.
	depth() int
	// forward adds the forward graph to n, down to the loss.
	forward(n *net)
	base() *common
}

// common are the settings that every family has.
type common struct {
	batch int64
	// micro is how many micro-batches a step takes its samples in; 0 stands for 1.
	micro int64
	dtype graph.DType // of activations and parameters
	train train.Config
	// scores are those of families whose attention may be one kernel.
	scores Scores
	// inference leaves the forward graph as it is: no gradients, no updates.
	inference bool
}

func (c *common) base() *common { return c }

func (c *common) faults() faults.List { return nil }

func (c *common) optimizer() setting { return setting{name: "optimizer", to: c} }

// masterWeights is the setting of families that have one for dtype.
func (c *common) masterWeights() setting {
	return setting{name: "master_weights", to: &c.train.MasterWeights}
}

// precision reports master weights that no variable would have.
func (c *common) precision() error {
	switch {
	case !c.train.MasterWeights:
	case c.inference:
		return errors.New("master_weights is true without an optimizer")
	case c.dtype != graph.F16 && c.dtype != graph.BF16:
		return fmt.Errorf("master_weights is true with weights of %v, want f16 or bf16", c.dtype)
	}
	return nil
}

// noOptimizer is the optimizer of a graph that is not trained.
const noOptimizer = "none"

// build returns the training graph of m, or the forward graph where it is not
// trained.
func build(m model, name string) (*graph.Graph, error) {
	if err := validate(m); err != nil {
		return nil, err
	}
	if m.base().micro > 1 {
		return buildInParts(m, name)
	}
	return buildWhole(m, name)
}

// buildInParts returns the step of m on one device whose passes are repeated for every
// micro-batch (package strategy).
func buildInParts(m model, name string) (*graph.Graph, error) {
	c := m.base()
	batch := c.batch
	c.batch = batch / c.micro
	part, err := buildWhole(m, name)
	c.batch = batch
	if err != nil {
		return nil, err
	}
	whole, err := buildWhole(m, name)
	if err != nil {
		return nil, err
	}
	x, err := strategy.NewModel(part, whole, strategy.States(part, whole))
	if err != nil {
		return nil, err
	}
	alike := make([]float64, part.NumOps()) // blocks are not cut
	for i := range alike {
		alike[i] = 1
	}
	s := strategy.Single(int(c.micro))
	s.Schedule = strategy.Unordered
	step, err := strategy.Derive(x, strategy.NewBlocks(x, alike), s, strategy.Options{})
	if err != nil {
		return nil, err
	}
	return step.Graph, nil
}

// buildWhole is build in one micro-batch.
func buildWhole(m model, name string) (*graph.Graph, error) {
	c := m.base()
	n := newNet(name, c.dtype)
	n.dynamic = !c.train.StaticShapes
	m.forward(n)
	g, err := n.b.Build()
	if err != nil {
		return nil, err
	}
	if c.inference {
		return g, nil
	}
	return train.Derive(g, c.train)
}

// validate reports every fault of m.
func validate(m model) error {
	var errs []error
	for _, s := range m.settings() {
		errs = append(errs, s.check())
	}
	errs = append(errs, m.base().train.Validate(), m.base().precision())
	return errors.Join(append(errs, m.faults()...)...)
}

// setting is a number, a switch, an element type, a form of attention or an optimizer of a model, under
// the name that its textual form has.
type setting struct {
	name      string
	to        any   // *int, *int64, *bool, *graph.DType, *Scores or, for the optimizer, *common
	low, high int64 // of numbers
}

// set reads the textual form.
func (s setting) set(text string) error {
	var err error
	switch to := s.to.(type) {
	case *int, *int64:
		x, fault := strconv.Atoi(text)
		if fault != nil {
			return errors.New("want a whole number")
		}
		if n, ok := to.(*int); ok {
			*n = x
		} else {
			*to.(*int64) = int64(x)
		}
	case *bool:
		if *to, err = strconv.ParseBool(text); err != nil {
			return errors.New("want true or false")
		}
	case *graph.DType:
		*to, err = graph.ParseDType(text)
	case *Scores:
		*to, err = ParseScores(text)
	case *common:
		if to.inference = text == noOptimizer; !to.inference {
			if to.train.Optimizer, err = train.ParseOptimizer(text); err != nil {
				err = fmt.Errorf("%w or %s", err, noOptimizer)
			}
		}
	}
	return err
}

// check reports a value out of range.
func (s setting) check() error {
	switch to := s.to.(type) {
	case *int:
		return between(s.name, int64(*to), s.low, s.high)
	case *int64:
		return between(s.name, *to, s.low, s.high)
	case *graph.DType:
		switch *to {
		case graph.F32, graph.F16, graph.BF16, graph.F64:
		default:
			return fmt.Errorf("dtype is %v, want f32, f16, bf16 or f64", *to)
		}
	}
	return nil
}

// between is an error that names the field when x is outside [low, high].
func between(field string, x, low, high int64) error {
	if x < low || x > high {
		return fmt.Errorf("%s is %d, want %d to %d", field, x, low, high)
	}
	return nil
}
