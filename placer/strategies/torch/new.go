package torch

import (
	"errors"
	"slices"

	"placer/graph"
	"placer/graph/strategy"
)

// New says by modules what step, which is folded, of the model m divides; batch is the samples of
// a step. The error says what of it PyTorch does not run, and in which module.
func New(m *strategy.Model, step *strategy.Step, batch int64) (*File, error) {
	s := step.Strategy
	f := &File{
		Format: format, Graph: m.Micro.Name(), Batch: batch, Trains: strategy.Trains(m.Micro), Strategy: s.String(),
		Data: s.Data, Sharding: strategy.Replicated.String(), Pipeline: s.Pipeline, Chunks: s.Chunks, Tensor: s.Tensor,
		MicroBatches: s.MicroBatches, Recompute: s.Recompute.String(), Vocabulary: s.Vocabulary, Sequence: s.Sequence,
		Collectives: collectivesOf(step),
	}
	if s.Data > 1 {
		f.Sharding = s.Sharding.String()
	}
	modules := strategy.FindModules(m)
	if len(modules.Paths) == 0 {
		return nil, errors.New("the graph's ops are in no modules; 'python -m placer_torch capture' writes such as are")
	}
	f.Layers = layers(m, modules)
	if s.Tensor > 1 {
		if err := f.cut(m, s); err != nil {
			return nil, err
		}
	}
	if s.Context > 0 {
		f.Context = s.Context
		if own, err := experts(m, s.Context); err == nil {
			f.Experts = own // each rank runs them on its own rows; others' rows are gathered for the rest
		}
	}
	if s.Experts > 0 {
		f.ExpertRanks = s.Experts
		var err error
		if f.Experts, err = experts(m, s.Experts); err != nil {
			return nil, err
		}
	}
	if s.Pipeline > 1 {
		f.Schedule = s.Schedule.String()
		var err error
		if f.Stages, err = stages(modules, step); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// layers returns the modules that hold parameters, one layer each: elements of lists where some
// of these do, as the first and the last module of a decoder are none.
func layers(m *strategy.Model, x *strategy.Modules) [][]string {
	holds := make([]bool, len(x.Paths))
	for i, k := range x.Of {
		if k < 0 {
			continue
		}
		for _, t := range m.Micro.Inputs(graph.OpID(i)) {
			holds[k] = holds[k] || parameter(m, t) != graph.None
		}
	}
	elements := false
	for k, path := range x.Paths {
		elements = elements || holds[k] && strategy.InList(path)
	}
	var found [][]string
	for k, path := range x.Paths {
		if holds[k] && strategy.InList(path) == elements {
			found = append(found, []string{path})
		}
	}
	return slices.Clip(found)
}

// parameter returns the op that holds the parameter that tensor t is, or is a view or another type
// of; None where it is of none.
func parameter(m *strategy.Model, t graph.TensorID) graph.OpID {
	g := m.Micro
	for i := g.Tensor(t).Producer; m.Once(i) && g.Op(i).Phase != graph.Update; {
		in := g.Inputs(i)
		switch o := g.Op(i); {
		case o.Params > 0:
			return i
		case len(in) == 0 || o.Kind.Class() != graph.ClassMeta && o.Kind != "Cast":
			return graph.None
		}
		i = g.Tensor(in[0]).Producer
	}
	return graph.None
}
