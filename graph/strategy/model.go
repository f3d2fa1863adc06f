package strategy

import (
	"fmt"
	"strings"

	"placer/graph"
)

// Model is one model's step at two batch sizes: Micro of one micro-batch, Whole of all
// samples that a step has. Both have the same ops.
type Model struct {
	Micro, Whole *graph.Graph
	once         []bool // [N] there once for a replica
	// Joint is the step of the micro-batches that all replicas run at once, where experts are
	// shared out among them: how many experts have rows, and how many of these each, is not
	// linear in the batch.
	Joint *graph.Graph
	// state says of each op, [N], that it holds something of the samples, such as keys and values
	// of the tokens before: each micro-batch has its own.
	state []bool
}

// NewModel reports where the graphs are not of the same ops, and where a forward op reads what the
// backward pass makes: micro-batches go forward, then backward. state are the ops that States finds,
// nil for none.
func NewModel(micro, whole *graph.Graph, state []bool) (*Model, error) {
	if micro.NumOps() != whole.NumOps() || micro.NumTensors() != whole.NumTensors() {
		return nil, fmt.Errorf("graph %s: its ops depend on the batch: %d for a micro-batch, %d for the whole", micro.Name(), micro.NumOps(), whole.NumOps())
	}
	m := &Model{Micro: micro, Whole: whole, once: make([]bool, micro.NumOps()), state: state}
	if state == nil {
		m.state = make([]bool, micro.NumOps())
	}
	for i := range m.once {
		a, b := micro.Op(graph.OpID(i)), whole.Op(graph.OpID(i))
		if a.Kind != b.Kind || a.Phase != b.Phase || a.Params != b.Params || len(micro.Inputs(graph.OpID(i))) != len(whole.Inputs(graph.OpID(i))) {
			return nil, fmt.Errorf("graph %s: op %d is %s (%s) for a micro-batch, %s (%s) for the whole", micro.Name(), i, a.Name, a.Kind, b.Name, b.Kind)
		}
		m.once[i] = m.isOnce(graph.OpID(i))
	}
	if err := m.passes(); err != nil {
		return nil, err
	}
	return m, nil
}

// passes returns an error where an op of the forward pass waits for one of the backward pass.
func (m *Model) passes() error {
	g := m.Micro
	for i := range graph.OpID(g.NumOps()) {
		if m.once[i] || g.Op(i).Phase != graph.Forward {
			continue
		}
		for p := range g.Predecessors(i) {
			if !m.once[p] && g.Op(p).Phase == graph.Backward {
				return fmt.Errorf("graph %s: op %s is of the forward pass and reads %s of the backward pass: a gradient within the loss is of the forward pass", g.Name(), g.Op(i).Name, g.Op(p).Name)
			}
		}
	}
	return nil
}

// Trains reports whether the step of g has more than a forward pass.
func Trains(g *graph.Graph) bool {
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase != graph.Forward {
			return true
		}
	}
	return false
}

// Once reports whether op i is there once for a replica, whatever the micro-batches.
func (m *Model) Once(i graph.OpID) bool { return m.once[i] }

// HasState reports whether samples hold something between steps. A constant, of a number for each
// sample, is the same in all.
func (m *Model) HasState() bool {
	for i, held := range m.state {
		if held && m.Micro.Op(graph.OpID(i)).Kind.Class() != graph.ClassConst {
			return true
		}
	}
	return false
}

// isOnce reports whether op i is there once, given what it reads: it updates, it holds
// something that is no state, or it computes of such ops alone what no chance and no sample
// enters.
func (m *Model) isOnce(i graph.OpID) bool {
	o := m.Micro.Op(i)
	switch {
	case o.Phase == graph.Update:
		return true
	case m.state[i]:
		return false
	case holds(o):
		return true
	case o.Kind.Class() == graph.ClassInput, random(o):
		return false
	}
	some := false
	for p := range m.Micro.Predecessors(i) {
		some = true
		if !m.once[p] || m.Micro.Op(p).Phase == graph.Update {
			return false
		}
	}
	return some
}

// random reports whether op o draws numbers.
func random(o *graph.Op) bool {
	return strings.HasPrefix(string(o.Kind), "Random") || o.Kind == "Dropout" || o.Kind == "Bernoulli"
}

// ofUpdates reports whether op i holds what updates alone read, such as a moment of an
// optimizer, whatever the phase that its graph gives it.
func (m *Model) ofUpdates(i graph.OpID) bool {
	g := m.Micro
	if o := g.Op(i); !holds(o) || o.Params > 0 {
		return false
	}
	some := false
	t, end := g.Outputs(i)
	for ; t < end; t++ {
		for _, v := range g.Consumers(t) {
			if some = true; g.Op(v).Phase != graph.Update {
				return false
			}
		}
	}
	return some
}

// holds reports whether an op holds memory of its own and computes nothing.
func holds(o *graph.Op) bool {
	c := o.Kind.Class()
	return c == graph.ClassVariable || c == graph.ClassConst || o.Resident > 0 || o.Params > 0
}

// first returns the first output of op i.
func first(g *graph.Graph, i graph.OpID) graph.TensorID {
	t, _ := g.Outputs(i)
	return t
}

// gradients returns the tensors that ops of the passes make and ops that are there once
// read: what is summed, concatenated or handed on, ascending.
func (m *Model) gradients() (ts []graph.TensorID) {
	g := m.Micro
	for t := range graph.TensorID(g.NumTensors()) {
		if m.once[g.Tensor(t).Producer] {
			continue
		}
		for _, v := range g.Consumers(t) {
			if m.once[v] {
				ts = append(ts, t)
				break
			}
		}
	}
	return ts
}

// rule says how a gradient of all micro-batches is made of theirs.
type rule uint8

const (
	summed       rule = iota // added up
	concatenated             // rows, side by side
	last                     // the last micro-batch's, of each replica: what a buffer is assigned, integers, such as a shape
)

func (m *Model) ruleOf(t graph.TensorID) rule {
	a, b := m.Micro.Tensor(t), m.Whole.Tensor(t)
	switch {
	case a.Bytes != b.Bytes:
		return concatenated
	case a.DType == graph.I32 || a.DType == graph.I64 || a.DType == graph.Bool || m.assigned(t):
		return last
	}
	return summed
}

// assigned reports whether tensor t is read once by assignments alone, as the statistics of batch
// norm are, which every replica keeps by itself.
func (m *Model) assigned(t graph.TensorID) bool {
	for _, v := range m.Micro.Consumers(t) {
		if m.once[v] && m.Micro.Op(v).Kind != "Assign" {
			return false
		}
	}
	return true
}
