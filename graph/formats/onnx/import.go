package onnx

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"placer/graph"
	"placer/units"
)

// importer holds the state of one Import.
type importer struct {
	model  *model
	cfg    Config
	sum    *Summary
	listed map[string]bool // symbols and notes in the summary
	dims   map[string]bool // of Config.Dims, those that a shape has
	budget int             // nodes that may still be inferred
	depth  int             // nesting of bodies

	unruled  map[string]int // nodes of each operator without a rule
	integers int64          // parameters of weights that are integers

	b       *graph.Builder
	names   *names
	root    *scope
	learned map[string]learned
	tabled  map[string]int64          // their elements
	tables  map[string]bool           // constants that stand where weights may and are none
	by      map[string]int            // tensor -> node that makes it
	inits   map[string]*initializer   // by name
	ids     map[string]graph.TensorID // tensors that are in the builder
	phases  map[string]graph.Phase    // of the tensors of ops that are not forward

	readers     map[string][]int        // tensor -> nodes that read it, -1 for the graph's outputs
	constants   map[string]*known       // tensors known before the step, but for initializers
	counted     map[string]bool         // weights whose parameters an op holds
	dequantized map[string]*dequantized // what DequantizeLinear nodes make of 8-bit tensors
	pending     map[string]*pending     // integer products whose result may be quantised next
}

// Import reads the ONNX model in data, which it does not keep. name is the
// file's name for errors, which say file, node and reason on one line.
//
// What is a weight is decided by use: a float or quantized constant that
// reaches a weight input (of Conv, Gemm, MatMul, a normalisation, Gather,
// LSTM, ...), directly or through views such as Transpose and DequantizeLinear,
// or, with more than one element, an addition or a multiplication; but for tables
// that no step learns.
func Import(data []byte, name string, cfg Config) (*graph.Graph, *Summary, error) {
	g, sum, err := read(data, strings.TrimSuffix(filepath.Base(name), ".onnx"), cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, sum, nil
}

func read(data []byte, name string, cfg Config) (*graph.Graph, *Summary, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	m, err := parseModel(data)
	if err != nil {
		return nil, nil, err
	}
	imp := newImporter(m, name, cfg)
	fault := externals(m, cfg.External)
	if imp.sum.Inlined, err = inline(m); err != nil {
		return nil, nil, err
	}
	imp.budget += len(m.graph.nodes)
	if err := imp.graph(); err != nil {
		if unread := fault(); unread != nil {
			err = fmt.Errorf("%w; %w", err, unread)
		} else if open := imp.openDims(); open != "" && errors.As(err, &misfit{}) {
			err = fmt.Errorf("%w; %s", err, open)
		}
		return nil, nil, err
	}
	g, err := imp.b.Build()
	if err != nil {
		return nil, nil, err
	}
	imp.sum.Ops, imp.sum.Params = g.NumOps(), g.Params()
	for _, name := range slices.Sorted(maps.Keys(cfg.Dims)) {
		if !imp.dims[name] {
			imp.sum.UnknownDims = append(imp.sum.UnknownDims, name)
		}
	}
	return g, imp.sum, nil
}

func newImporter(m *model, name string, cfg Config) *importer {
	return &importer{
		model: m, cfg: cfg, sum: &Summary{Producer: clean(m.producer)}, listed: map[string]bool{}, dims: map[string]bool{}, budget: maxInner, unruled: map[string]int{},
		b: graph.NewBuilder(clean(name)), names: newNames(), root: newScope(nil), learned: map[string]learned{}, tabled: map[string]int64{},
		inits: map[string]*initializer{}, ids: map[string]graph.TensorID{}, phases: map[string]graph.Phase{},
		readers: map[string][]int{}, constants: map[string]*known{}, counted: map[string]bool{}, dequantized: map[string]*dequantized{}, pending: map[string]*pending{},
	}
}

// graph adds the main graph to the builder.
func (imp *importer) graph() error {
	g := imp.model.graph
	if err := imp.findInitializers(g); err != nil {
		return err
	}
	inputs, err := imp.findInputs(g)
	if err != nil {
		return err
	}
	for i := range g.valueInfo {
		imp.root.info[g.valueInfo[i].name] = &g.valueInfo[i]
	}
	for i := range g.outputs {
		if v := &g.outputs[i]; imp.root.info[v.name] == nil {
			imp.root.info[v.name] = v
		}
	}
	imp.root.opsets = imp.model.opsets
	imp.by, err = producers(g.nodes, func(name string) bool { return imp.inits[name] != nil || inputs[name] != nil })
	if err != nil {
		return err
	}
	reads := make([][]string, len(g.nodes)) // inputs, then what subgraphs read
	for i := range g.nodes {
		n := &g.nodes[i]
		reads[i] = n.in
		if more := captured(n); len(more) > 0 {
			reads[i] = append(slices.Clone(n.in), more...)
		}
		for _, name := range n.in {
			if _, ok := imp.by[name]; ok && name != "" {
				imp.sum.Edges++
			}
		}
		for _, name := range reads[i] {
			imp.readers[name] = append(imp.readers[name], i)
		}
	}
	for i := range g.outputs {
		imp.readers[g.outputs[i].name] = append(imp.readers[g.outputs[i].name], -1)
	}
	order, err := topological(g.nodes, imp.by, func(i int) []string { return reads[i] })
	if err != nil {
		return err
	}
	findLearned(g.nodes, order, imp.learned)
	imp.tables = findTables(g, order, imp.readers, imp.by)
	if err := imp.addTensors(g, inputs); err != nil {
		return err
	}
	for _, i := range order {
		if err := imp.addNode(&g.nodes[i], i, reads[i]); err != nil {
			return fmt.Errorf("%s: %w", g.nodes[i].place(i), err)
		}
	}
	for i := range g.outputs {
		name := g.outputs[i].name
		if imp.root.tensors[name] == nil {
			return fmt.Errorf("output %d (%q) of the graph is made by no node", i, brief(name))
		}
		if _, err := imp.deferred(name); err != nil {
			return fmt.Errorf("output %d (%q): %w", i, brief(name), err)
		}
	}
	imp.sumUp()
	imp.sum.types = make(map[string]tensorType, len(imp.root.tensors))
	for name, t := range imp.root.tensors {
		imp.sum.types[name] = tensorType{t.elem, t.shape}
	}
	imp.sum.Nodes, imp.sum.Initializers, imp.sum.Inputs, imp.sum.Outputs = len(g.nodes), len(g.inits), len(inputs), len(g.outputs)
	return nil
}

func (imp *importer) findInitializers(g *protoGraph) error {
	for i := range g.inits {
		x := &g.inits[i]
		if x.name == "" || imp.inits[x.name] != nil {
			return fmt.Errorf("initializer %d: name %q is empty or taken", i, brief(x.name))
		}
		imp.inits[x.name] = x
	}
	return nil
}

// findInputs returns the inputs that are no initializers, by name.
func (imp *importer) findInputs(g *protoGraph) (map[string]*valueInfo, error) {
	inputs := map[string]*valueInfo{}
	for i := range g.inputs {
		v := &g.inputs[i]
		if imp.inits[v.name] != nil {
			continue // files before IR version 4 list initializers here too
		}
		if v.name == "" || inputs[v.name] != nil {
			return nil, fmt.Errorf("input %d: name %q is empty or taken", i, brief(v.name))
		}
		inputs[v.name] = v
	}
	return inputs, nil
}

// addTensors puts inputs and initializers into the scope, and the inputs that
// are read into the builder.
func (imp *importer) addTensors(g *protoGraph, inputs map[string]*valueInfo) error {
	for i := range g.inits {
		x := &g.inits[i]
		t, err := x.tensor(imp.weight(x.name, elem(x.elem), product(x.dims)))
		if err != nil {
			return fmt.Errorf("initializer %q: %w", brief(x.name), err)
		}
		imp.root.tensors[x.name] = t
	}
	for i := range g.inputs {
		v := &g.inputs[i]
		if inputs[v.name] != v {
			continue
		}
		t, err := imp.value(v)
		if err != nil {
			return fmt.Errorf("input %q: %w", brief(v.name), err)
		}
		imp.root.tensors[v.name] = t
		if _, read := imp.learned[v.name]; read && t.shape != nil && t.elem.known() {
			op := graph.Op{Name: imp.names.unique(v.name), Kind: "Placeholder", DType: t.elem.dtype(), Bytes: graph.Auto, Forward: graph.None}
			imp.ids[v.name] = imp.b.Output(imp.b.Op(op, nil, imp.made(t, false)), 0)
		}
	}
	return nil
}

// weight reports whether the named constant is one to be learned.
func (imp *importer) weight(name string, e elem, n int64) bool {
	if !imp.learned[name].isWeight(e, n) {
		return false
	}
	if imp.tables[name] {
		imp.tabled[name] = n
		return false
	}
	return true
}

// made returns the builder's form of t.
func (imp *importer) made(t *tensor, resident bool) graph.Tensor {
	return graph.Tensor{DType: t.elem.dtype(), Shape: t.shape, Bytes: t.elem.bytes(t.elements()), Resident: resident}
}

// use returns the id of a tensor that is read, adding what makes it where no op does
// yet. ok is false for tensors that no op makes: outputs that are strings.
func (imp *importer) use(name string) (id graph.TensorID, ok bool, err error) {
	if there, err := imp.deferred(name); err != nil {
		return 0, false, err
	} else if id, ok := imp.ids[name]; ok || there {
		return id, ok, nil
	}
	x := imp.inits[name]
	if x == nil {
		return 0, false, nil
	}
	t := imp.root.tensors[name]
	if !t.elem.known() {
		return 0, false, nil
	}
	size := t.elem.bytes(t.elements())
	if x.sparse >= 0 {
		size = t.elem.bytes(x.sparse) + elemInt64.bytes(x.sparse)
	}
	return imp.hold(name, name, t, size, imp.rootsOf(name)), true, nil
}

// deferred adds the op that makes the named tensor where that was put off until
// something reads it, and reports whether it was.
func (imp *importer) deferred(name string) (bool, error) {
	if _, ok := imp.ids[name]; ok {
		return false, nil
	}
	if k := imp.constants[name]; k != nil {
		return true, imp.addConstant(name, k)
	}
	if d := imp.dequantized[name]; d != nil {
		delete(imp.dequantized, name)
		return true, imp.addOp(d.call, imp.opOf(d.call, d.index), d.reads, false)
	}
	if p := imp.pending[name]; p != nil {
		delete(imp.pending, name)
		return true, imp.addOp(p.call, p.op, p.reads, false)
	}
	return false, nil
}

// hold adds the op that holds a tensor known before the step, called name if that is
// free, and returns its output. The parameters of the weights roots that no op holds
// yet are counted with it.
func (imp *importer) hold(tensor, name string, t *tensor, size units.Bytes, roots []string) graph.TensorID {
	op := graph.Op{Name: imp.names.unique(name), Kind: "Constant", DType: t.elem.dtype(), Bytes: graph.Auto, Forward: graph.None, Resident: size}
	for _, root := range roots {
		if !imp.counted[root] {
			imp.counted[root] = true
			w := imp.root.tensors[root]
			params := imp.learned[root].params(w.elem, w.elements())
			op.Params += params
			if !w.elem.float() {
				imp.integers += params
			}
		}
	}
	if op.Params > 0 || len(roots) > 0 || t.elem.float() && t.elements() > 1 {
		op.Kind = "Initializer"
	}
	id := imp.b.Output(imp.b.Op(op, nil, imp.made(t, true)), 0)
	imp.ids[tensor] = id
	return id
}

// addNode infers node i and adds its op, unless it is known before the step or part of
// another op.
func (imp *importer) addNode(n *node, i int, reads []string) error {
	c, err := imp.infer(imp.root, n)
	if err != nil {
		return err
	}
	if imp.fold(c, reads) || imp.dequantize(c, i, reads) {
		return nil
	}
	if done, err := imp.requantize(c, reads); done || err != nil {
		return err
	}
	op := imp.opOf(c, i)
	if done := imp.integerProduct(c, &op, &reads); done {
		return nil
	}
	return imp.addOp(c, op, reads, false)
}

// opOf returns the op of node i with its costs.
func (imp *importer) opOf(c *call, i int) graph.Op {
	name := c.node.name
	if clean(name) == "" {
		name = fmt.Sprintf("%s_%d", c.node.op, i)
	}
	op := graph.Op{Name: imp.names.unique(name), Kind: c.kind, DType: c.dtype(), Bytes: c.bytes, Forward: graph.None, Resident: c.resident, Params: c.params, Workspace: c.workspace, Module: c.node.module}
	if class := op.Kind.Class(); class != graph.ClassVariable && class != graph.ClassConst {
		c.host = c.shapeArithmetic()
		op.FLOPs, op.GEMM = c.cost()
		if c.host {
			op.Bytes = 0
		} else if c.repeats > 1 {
			op.Repeats, op.Kernels = c.repeats, c.kernels
		}
	}
	return op
}

// addOp adds op, which reads the named tensors, under the next id.
func (imp *importer) addOp(c *call, op graph.Op, reads []string, resident bool) error {
	var in []graph.TensorID
	var before graph.Phase
	for k, name := range reads {
		if name == "" {
			continue
		}
		id, ok, err := imp.use(name)
		if err != nil {
			return err
		}
		if !ok {
			if t := imp.root.find(name); t != nil {
				return fmt.Errorf("input %d (%q) has no shape%s", k, brief(name), t.why)
			}
			return fmt.Errorf("input %d (%q) is made by no node, input or initializer", k, brief(name))
		}
		in = append(in, id)
		before = max(before, imp.phases[name])
	}
	op.Phase = phase(c.node, op.Kind, before)
	var outs []graph.Tensor
	var ids []string
	for k, name := range c.node.out {
		if k > 0 && op.Kind == "Identity" { // the mask of a Dropout that drops nothing
			break
		}
		if t := c.out[k]; name != "" && t.elem.known() {
			outs, ids = append(outs, imp.made(t, resident)), append(ids, name)
		}
	}
	id := imp.b.Op(op, in, outs...)
	for slot, name := range ids {
		imp.ids[name] = imp.b.Output(id, slot)
		if op.Phase != graph.Forward {
			imp.phases[name] = op.Phase
		}
	}
	return nil
}
