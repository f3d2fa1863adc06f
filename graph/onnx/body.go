package onnx

import (
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/units"
)

// maxInner bounds the nodes of bodies inferred in all: functions that call each
// other could be small in the file and endless in effect.
const maxInner = 1 << 20

// body is the cost of the nodes of a subgraph or a function.
type body struct {
	scope     *scope
	flops     units.FLOPs // beside the products
	products  []graph.GEMM
	bytes     units.Bytes
	workspace units.Bytes // the largest outputs of one node
	resident  units.Bytes
	params    int64
}

// evaluate infers the nodes of a body whose inputs stand in s.
func (imp *importer) evaluate(s *scope, nodes []node, what string) (*body, error) {
	if imp.depth++; imp.depth > maxNesting {
		return nil, fmt.Errorf("%s: subgraphs and functions are nested deeper than %d", what, maxNesting)
	}
	defer func() { imp.depth-- }()
	b := &body{scope: s}
	by, err := producers(nodes, func(name string) bool { return s.tensors[name] != nil })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	order, err := topological(nodes, by, func(i int) []string {
		return append(nodes[i].in[:len(nodes[i].in):len(nodes[i].in)], captured(&nodes[i])...)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for _, i := range order {
		c, err := imp.infer(s, &nodes[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", what, nodes[i].place(i), err)
		}
		c.host = c.shapeArithmetic()
		b.add(c)
	}
	return b, nil
}

// add adds the cost of one node.
func (b *body) add(c *call) {
	f, _ := c.cost()
	_, products := gemm(c.products)
	b.flops += f - products
	b.products = append(b.products, c.products...)
	b.resident += c.resident
	b.params += c.params
	var in, out units.Bytes
	for k, t := range c.in {
		if t != nil && t.elem.known() && !slices.Contains(c.in[:k], t) {
			in += t.elem.bytes(t.elements())
		}
	}
	for _, t := range c.out {
		if t.elem.known() {
			out += t.elem.bytes(t.elements())
		}
	}
	b.workspace = max(b.workspace, out+c.workspace)
	switch class := c.kind.Class(); {
	case c.host:
	case c.bytes >= 0:
		b.bytes += c.bytes
	case class == graph.ClassInput || class == graph.ClassVariable || class == graph.ClassConst || class == graph.ClassMeta:
	case class == graph.ClassGather:
		b.bytes += 2 * out
	default:
		b.bytes += in + out
	}
}

// take makes the cost of times executions of b that of the op.
func (c *call) take(b *body, times int64) {
	c.flops = b.flops * units.FLOPs(times)
	for _, g := range b.products {
		g.Batch = c.mul(g.Batch, max(times, 1))
		c.products = append(c.products, g)
	}
	if times == 0 {
		c.products = nil
	}
	x := float64(b.bytes) * float64(times)
	if !(x < float64(graph.MaxBytes)) {
		c.fail("its body moves %.3g bytes", x)
	}
	c.bytes, c.workspace, c.resident, c.params = units.Bytes(x), b.workspace, b.resident, b.params
}

// subgraph evaluates graph g with the given inputs.
func (c *call) subgraph(name string, inputs []*tensor) (*body, *protoGraph, error) {
	a := c.node.attr(name)
	if a == nil || a.graph == nil {
		return nil, nil, fmt.Errorf("has no graph %s", name)
	}
	g := a.graph
	if len(g.inputs) != len(inputs) {
		return nil, nil, fmt.Errorf("graph %s has %d inputs, want %d", name, len(g.inputs), len(inputs))
	}
	s := newScope(c.scope)
	var resident units.Bytes
	var params int64
	order := make([]int, len(g.nodes))
	for i := range order {
		order[i] = i
	}
	found := map[string]learned{}
	findLearned(g.nodes, order, found)
	for i := range g.inits {
		x := &g.inits[i]
		t, err := x.tensor(found[x.name].isWeight(elem(x.elem), product(x.dims)))
		if err != nil {
			return nil, nil, fmt.Errorf("graph %s: initializer %q: %w", name, clean(x.name), err)
		}
		s.tensors[x.name] = t
		if t.elem.known() {
			resident += t.elem.bytes(t.elements())
		}
		if found[x.name].isWeight(t.elem, t.elements()) {
			params += t.elements()
		}
	}
	for k := range g.inputs {
		s.tensors[g.inputs[k].name] = inputs[k]
	}
	for i := range g.valueInfo {
		s.info[g.valueInfo[i].name] = &g.valueInfo[i]
	}
	for i := range g.outputs {
		s.info[g.outputs[i].name] = &g.outputs[i]
	}
	b, err := c.imp.evaluate(s, g.nodes, "graph "+name)
	if err != nil {
		return nil, nil, err
	}
	b.resident += resident
	b.params += params
	for i := range g.outputs {
		if s.find(g.outputs[i].name) == nil {
			return nil, nil, fmt.Errorf("graph %s: output %q is made by no node", name, clean(g.outputs[i].name))
		}
	}
	return b, g, nil
}

// product multiplies dimensions, saturating.
func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		if d > 0 && n > math.MaxInt64/d {
			return math.MaxInt64
		}
		n *= d
	}
	return n
}

// control infers If, Loop and Scan.
func (c *call) control(op string) error {
	switch op {
	case "If":
		return c.branch()
	case "Loop":
		return c.loop()
	}
	return c.scan()
}

// branch costs what the dearer branch costs, or the one whose condition is
// known to hold. A branch whose shapes depend on data leaves the other.
func (c *call) branch() error {
	var best *body
	var failed error
	cond, known := c.known(0)
	known = known && len(cond) == 1
	for k, name := range []string{"then_branch", "else_branch"} {
		if known && (cond[0] != 0) != (k == 0) {
			continue
		}
		b, g, err := c.subgraph(name, nil)
		if err != nil {
			failed = err
			continue
		}
		if len(g.outputs) < len(c.out) {
			return fmt.Errorf("graph %s has %d outputs, want %d", name, len(g.outputs), len(c.out))
		}
		if best != nil && b.total() <= best.total() {
			continue
		}
		best = b
		for k := range c.out {
			*c.out[k] = *b.scope.find(g.outputs[k].name)
			if !known {
				c.out[k].value = nil
			}
		}
	}
	switch {
	case best == nil && failed != nil:
		return failed
	case failed != nil:
		c.imp.note("%s: one branch is left out: %v", clean(c.node.op+" "+c.node.name), failed)
	}
	if best != nil {
		c.take(best, 1)
	}
	return nil
}

func (b *body) total() units.FLOPs {
	_, f := gemm(b.products)
	return b.flops + f
}

// changing returns the shape and type of t without its elements: inside of a
// loop they change.
func changing(t *tensor) *tensor { return &tensor{elem: t.elem, shape: t.shape, why: t.why} }

// loop: trip count, condition, carried values; the body takes iteration,
// condition and carried values, and gives condition, carried values and one
// slice of each list to be collected.
func (c *call) loop() error {
	carried := max(len(c.in)-2, 0)
	trips := c.trips()
	inputs := []*tensor{{elem: elemInt64, shape: graph.Shape{}}, {elem: elemBool, shape: graph.Shape{}}}
	for k := range carried {
		inputs = append(inputs, changing(c.input(k+2)))
	}
	b, g, err := c.subgraph("body", inputs)
	if err != nil {
		return err
	}
	if len(g.outputs) < 1+len(c.out) || len(c.out) < carried {
		return fmt.Errorf("graph body has %d outputs for %d carried values and %d results", len(g.outputs), carried, len(c.out))
	}
	for k := range c.out {
		t := b.scope.find(g.outputs[k+1].name)
		if t.shape == nil {
			return fmt.Errorf("graph body: output %d has no shape%s", k+1, t.why)
		}
		s := t.shape
		if k >= carried {
			s = join([]int64{trips}, s)
		}
		c.set(k, t.elem, s)
	}
	c.take(b, trips)
	return nil
}

// trips returns the trip count of a loop, 1 where it is not known.
func (c *call) trips() int64 {
	if v, ok := c.known(0); ok && len(v) == 1 && v[0] <= maxDim {
		return max(v[0], 0)
	}
	c.imp.note("%s: the number of iterations is not known and taken as 1", clean(c.node.op+" "+c.node.name))
	return 1
}

// scan: states, then sequences that the body takes slice by slice.
func (c *call) scan() error {
	if c.opset() < 9 {
		return fmt.Errorf("Scan of operator set %d is not supported, 9 and later are", c.opset())
	}
	m := int(min(max(c.node.int("num_scan_inputs", 0), 0), int64(len(c.in))))
	states := len(c.in) - m
	if m < 1 {
		return fmt.Errorf("num_scan_inputs is %d of %d inputs", c.node.int("num_scan_inputs", 0), len(c.in))
	}
	axes := c.perAxis("scan_input_axes", m, 0)
	var inputs []*tensor
	length := int64(0)
	for k := range c.in {
		t := changing(c.input(k))
		if k >= states {
			s := c.ranked(k, 1, maxRank)
			axis := c.axis(axes[k-states], len(s))
			length, t.shape = s[axis], join(s[:axis], s[axis+1:])
		}
		inputs = append(inputs, t)
	}
	b, g, err := c.subgraph("body", inputs)
	if err != nil {
		return err
	}
	if len(g.outputs) < len(c.out) || len(c.out) < states {
		return fmt.Errorf("graph body has %d outputs for %d states and %d results", len(g.outputs), states, len(c.out))
	}
	outAxes := c.perAxis("scan_output_axes", len(c.out)-states, 0)
	for k := range c.out {
		t := b.scope.find(g.outputs[k].name)
		if t.shape == nil {
			return fmt.Errorf("graph body: output %d has no shape%s", k, t.why)
		}
		s := t.shape
		if k >= states {
			axis := c.axis(outAxes[k-states], len(s)+1)
			s = join(s[:axis], []int64{length}, s[axis:])
		}
		c.set(k, t.elem, s)
	}
	c.take(b, length)
	return nil
}

// function evaluates the body of a model-local function with the call's inputs
// and attributes.
func (c *call) function(fn *function) error {
	if len(c.in) > len(fn.inputs) || len(c.out) > len(fn.outputs) {
		return fmt.Errorf("function %s has %d inputs and %d outputs, the call has %d and %d", clean(fn.name), len(fn.inputs), len(fn.outputs), len(c.in), len(c.out))
	}
	s := newScope(nil)
	s.opsets = fn.opsets
	for k, t := range c.in {
		if t != nil {
			s.tensors[fn.inputs[k]] = t
		}
	}
	given := map[string]*attribute{}
	for i := range fn.attrs {
		given[fn.attrs[i].name] = &fn.attrs[i]
	}
	for i := range c.node.attrs {
		given[c.node.attrs[i].name] = &c.node.attrs[i]
	}
	nodes := bind(fn.nodes, given)
	for i := range nodes { // optional inputs that the call leaves out
		for k, name := range nodes[i].in {
			if j := slices.Index(fn.inputs, name); j >= len(c.in) || j >= 0 && c.in[j] == nil {
				nodes[i].in[k] = ""
			}
		}
	}
	b, err := c.imp.evaluate(s, nodes, "function "+clean(fn.name))
	if err != nil {
		return err
	}
	for k := range c.out {
		t := s.find(fn.outputs[k])
		if t == nil {
			return fmt.Errorf("function %s: output %q is made by no node", clean(fn.name), clean(fn.outputs[k]))
		}
		*c.out[k] = *t
	}
	c.take(b, 1)
	return nil
}

// bind returns a copy of nodes in which references to attributes of the
// function are replaced by the call's attributes, or left out where the call
// has none.
func bind(nodes []node, given map[string]*attribute) []node {
	out := slices.Clone(nodes)
	for i := range out {
		n := &out[i]
		n.in = slices.Clone(n.in)
		var attrs []attribute
		for _, a := range n.attrs {
			if a.ref != "" {
				g := given[a.ref]
				if g == nil {
					continue
				}
				name := a.name
				a = *g
				a.name = name
			}
			if a.graph != nil {
				g := *a.graph
				g.nodes = bind(g.nodes, given)
				a.graph = &g
			}
			attrs = append(attrs, a)
		}
		n.attrs = attrs
	}
	return out
}

// captured lists the tensors that the subgraphs of n read from outside, each
// once, in order.
func captured(n *node) (list []string) {
	var seen map[string]bool
	for k := range n.attrs {
		g := n.attrs[k].graph
		if g == nil {
			continue
		}
		if seen == nil {
			seen = map[string]bool{"": true}
		}
		own := map[string]bool{}
		for i := range g.inputs {
			own[g.inputs[i].name] = true
		}
		for i := range g.inits {
			own[g.inits[i].name] = true
		}
		for i := range g.nodes {
			for _, name := range g.nodes[i].out {
				own[name] = true
			}
		}
		read := func(name string) {
			if !own[name] && !seen[name] {
				seen[name] = true
				list = append(list, name)
			}
		}
		for i := range g.nodes {
			for _, name := range g.nodes[i].in {
				read(name)
			}
			for _, name := range captured(&g.nodes[i]) {
				read(name)
			}
		}
		for i := range g.outputs {
			read(g.outputs[i].name)
		}
	}
	return list
}
