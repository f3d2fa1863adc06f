package train

import (
	"fmt"
	"strings"

	"placer/graph"
)

// absent is no tensor.
const absent graph.TensorID = -1

// value is the gradient of a tensor: dense, or the rows that differ from zero
// (TensorFlow's IndexedSlices), or nothing when both are absent.
type value struct {
	dense                graph.TensorID
	rows, indices, shape graph.TensorID // rows [n, ...], indices [n], shape of the whole
}

var none = value{absent, absent, absent, absent}

func dense(t graph.TensorID) value { return value{t, absent, absent, absent} }

func (v value) isSparse() bool { return v.rows != absent }
func (v value) isNone() bool   { return v.dense == absent && v.rows == absent }

// deriver holds the state of one Derive. Forward ids are valid in b.
type deriver struct {
	cfg    Config
	fwd    *graph.Graph
	b      *graph.Builder
	leads  []bool               // [T] a trainable variable leads to the tensor
	grads  [][]value            // [T] gradients contributed so far
	final  map[graph.OpID]value // gradients of variables
	groups int32                // groups in use so far
	// Kinds of optimizer slots and of constants.
	variableKind, constantKind graph.Kind
	root                       [3]string // name scopes of gradients, optimizer, initializers
}

// Derive returns the graph of one training step of fwd: its ops under their ids,
// then the backward ops in reverse order, then the updates. Backward ops carry
// the op they differentiate (Forward), its Layer and its Module, and repeat as it does;
// updates, slots and
// reads share the Group of their variable, which gets one if it has none. A trainable
// variable is an op of ClassVariable with Params > 0 and a float output.
//
// It fails when fwd already has backward or update ops, when no loss depends on
// a trainable variable, or when a named loss does not exist or is no float.
func Derive(fwd *graph.Graph, cfg Config) (*graph.Graph, error) {
	fail := func(err error) (*graph.Graph, error) {
		return nil, fmt.Errorf("training graph of %s: %w", fwd.Name(), err)
	}
	if err := cfg.Validate(); err != nil {
		return fail(err)
	}
	d := &deriver{
		cfg: cfg, fwd: fwd, b: graph.NewBuilder(fwd.Name()),
		leads: make([]bool, fwd.NumTensors()), grads: make([][]value, fwd.NumTensors()),
		final: map[graph.OpID]value{},
	}
	if err := d.copyForward(); err != nil {
		return fail(err)
	}
	d.heldKinds()
	d.findLeads()
	losses, err := d.losses()
	if err != nil {
		return fail(err)
	}
	d.seed(losses)
	for i := graph.OpID(fwd.NumOps() - 1); i >= 0; i-- {
		d.visit(i)
	}
	if err := d.update(); err != nil {
		return fail(err)
	}
	if cfg.InitOps {
		d.initialize()
	}
	g, err := d.b.Build()
	if err != nil {
		return fail(err)
	}
	return g, nil
}

// stepSize is about how many ops a step has for each of the forward pass: room is made
// for them.
const stepSize = 4

// copyForward adds the forward ops to the builder, which gives them their old
// ids because they are in order.
func (d *deriver) copyForward() error {
	g := d.fwd
	roots := [len(d.root)]string{"gradients", "optimizer", "init"}
	taken := map[string]bool{}
	d.b.Grow(stepSize*g.NumOps(), stepSize*g.NumTensors())
	for i := graph.OpID(0); int(i) < g.NumOps(); i++ {
		o := *g.Op(i)
		if o.Phase != graph.Forward {
			return fmt.Errorf("op %d (%s): is a %v op; the graph is a training graph already", i, o.Name, o.Phase)
		}
		o.Forward = graph.None
		d.groups = max(d.groups, o.Group)
		scope, _, _ := strings.Cut(o.Name, "/")
		taken[scope] = true
		first, end := g.Outputs(i)
		outs := make([]graph.Tensor, 0, 4)
		for t := first; t < end; t++ {
			outs = append(outs, *g.Tensor(t))
		}
		d.b.Op(o, g.Inputs(i), outs...)
		for _, c := range g.Control(i) {
			d.b.Control(c, i)
		}
	}
	for k, r := range roots {
		d.root[k] = r
		for n := 1; taken[d.root[k]]; n++ {
			d.root[k] = fmt.Sprintf("%s_%d", r, n)
		}
	}
	return nil
}

// heldKinds says of which kinds the step's own variables and constants are: as the
// forward graph's, read in place or visited by an executor.
func (d *deriver) heldKinds() {
	d.variableKind, d.constantKind = "VariableV2", "Const"
	for i := range graph.OpID(d.fwd.NumOps()) {
		if f, _ := graph.FactsOf(d.fwd.Op(i).Kind); f.InPlace {
			d.variableKind, d.constantKind = "Initializer", "Constant"
			return
		}
	}
}

// isFloat reports whether gradients of type t exist.
func isFloat(t graph.DType) bool {
	switch t {
	case graph.F32, graph.F16, graph.BF16, graph.F64, graph.TF32, graph.F8:
		return true
	}
	return false
}

// trainable reports whether op i of g is a variable to be learned.
func trainable(g *graph.Graph, i graph.OpID) bool {
	o := g.Op(i)
	first, end := g.Outputs(i)
	return o.Kind.Class() == graph.ClassVariable && o.Params > 0 && first < end && isFloat(g.Tensor(first).DType)
}

// findLeads marks the tensors that depend on a trainable variable by ways that
// gradients take.
func (d *deriver) findLeads() {
	for i := graph.OpID(0); int(i) < d.fwd.NumOps(); i++ {
		first, end := d.fwd.Outputs(i)
		if trainable(d.fwd, i) {
			d.leads[first] = true
			continue
		}
		kind := d.fwd.Op(i).Kind
		if stops[kind] || kind.Class() == graph.ClassUpdate {
			continue
		}
		leads := false
		for _, t := range d.fwd.Inputs(i) {
			leads = leads || d.leads[t]
		}
		for t := first; leads && t < end; t++ {
			d.leads[t] = isFloat(d.fwd.Tensor(t).DType)
		}
	}
}

// losses returns the tensors to differentiate, ascending unless configured.
func (d *deriver) losses() ([]graph.TensorID, error) {
	if len(d.cfg.Loss) > 0 {
		for _, t := range d.cfg.Loss {
			if int(t) >= d.fwd.NumTensors() {
				return nil, fmt.Errorf("loss: tensor %d does not exist", t)
			}
			if x := d.fwd.Tensor(t); !d.leads[t] {
				return nil, fmt.Errorf("loss: tensor %d of op %d (%s): no trainable variable leads to it", t, x.Producer, d.fwd.Op(x.Producer).Name)
			}
		}
		return d.cfg.Loss, nil
	}
	var all, scalar []graph.TensorID
	for i := graph.OpID(0); int(i) < d.fwd.NumOps(); i++ {
		first, end := d.fwd.Outputs(i)
		read := trainable(d.fwd, i) // an unused variable is no loss
		for t := first; t < end; t++ {
			read = read || len(d.fwd.Consumers(t)) > 0
		}
		if read {
			continue // the other outputs of an op that is read are by-products
		}
		for t := first; t < end; t++ {
			if !d.leads[t] {
				continue
			}
			all = append(all, t)
			if d.size(t) == 1 {
				scalar = append(scalar, t)
			}
			break // further outputs are saved statistics or masks
		}
	}
	if len(scalar) > 0 {
		return scalar, nil
	}
	if len(all) == 0 {
		if d.integers() {
			return nil, fmt.Errorf("no float output depends on a trainable variable: weights are integers, which have no gradients; train the model that was quantised")
		}
		return nil, fmt.Errorf("no float output depends on a trainable variable")
	}
	return all, nil
}

// integers reports whether a variable would be trainable if it were no integer.
func (d *deriver) integers() bool {
	for i := range graph.OpID(d.fwd.NumOps()) {
		o := d.fwd.Op(i)
		if first, end := d.fwd.Outputs(i); o.Kind.Class() == graph.ClassVariable && o.Params > 0 && first < end && !isFloat(d.fwd.Tensor(first).DType) {
			return true
		}
	}
	return false
}

// seed gives every loss a gradient of ones.
func (d *deriver) seed(losses []graph.TensorID) {
	s := &scope{d: d, prefix: d.root[0] + "/"}
	for _, t := range losses {
		s.common = d.backwardScope(d.fwd.Tensor(t).Producer).common
		shape := s.shape(t)
		one := s.constantAs("grad_ys", scalar(d.fwd.Tensor(t).DType))
		d.contribute(t, dense(s.one("Fill", []graph.TensorID{shape, one}, s.like(t))))
	}
}

// contribute adds v to the gradients of forward tensor t.
func (d *deriver) contribute(t graph.TensorID, v value) { d.grads[t] = append(d.grads[t], v) }

// wanted reports whether the gradient of forward tensor t is to be made.
func (d *deriver) wanted(t graph.TensorID) bool {
	return d.leads[t] || d.cfg.AllGradients && isFloat(d.fwd.Tensor(t).DType)
}

// visit adds the backward ops of op i, whose consumers have all been visited.
func (d *deriver) visit(i graph.OpID) {
	first, end := d.fwd.Outputs(i)
	used := false
	for t := first; t < end; t++ {
		used = used || d.leads[t] && len(d.grads[t]) > 0
	}
	if !used {
		return
	}
	s := &step{scope: d.backwardScope(i), op: i, in: d.fwd.Inputs(i), first: first}
	s.given = make([]value, len(s.in))
	for k := range s.given {
		s.given[k] = none
	}
	for t := first; t < end; t++ {
		s.out = append(s.out, s.accumulate(t, d.grads[t]))
		d.grads[t] = nil
	}
	if trainable(d.fwd, i) {
		d.final[i] = s.out[0]
		return
	}
	s.zeroUnused()
	rule, ok := rules[d.fwd.Op(i).Kind]
	if !ok {
		rule = fallback
	}
	made := d.b.NumOps()
	rule(s)
	s.repeat(made)
	s.finish()
}
