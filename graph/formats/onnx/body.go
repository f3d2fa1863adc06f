package onnx

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/units"
)

// maxInner bounds the nodes of bodies inferred in all: functions that call each
// other could be small in the file and endless in effect.
const maxInner = 1 << 20

// body is the cost of the nodes of a subgraph or a function, executed once.
type body struct {
	scope     *scope
	flops     units.FLOPs // beside the products
	products  []repeated
	dearest   units.FLOPs // of the products of one node
	dtype     graph.DType // of that node
	kernels   float64     // launched where all is fused that compilers fuse
	repeats   int64       // the most iterations of one node
	bytes     units.Bytes
	workspace units.Bytes // the largest outputs of one node
	resident  units.Bytes
	params    int64
}

// repeated is a product that follows itself so many times.
type repeated struct {
	graph.GEMM
	times int64
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
	repeats, kernels := max(c.repeats, 1), max(c.kernels, 1)
	_, products := gemm(c.products)
	products *= units.FLOPs(repeats)
	if products > b.dearest {
		b.dearest, b.dtype = products, c.dtype()
	}
	b.flops += f - products
	for _, g := range c.products {
		b.products = append(b.products, repeated{g, repeats})
	}
	if c.kind.Leads() && !c.host {
		b.kernels += float64(repeats) * float64(kernels)
	}
	b.repeats = max(b.repeats, repeats)
	b.resident += c.resident
	b.params += c.params
	in, out := c.traffic()
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

// take makes the cost of times executions of b, one after another, that of the op.
func (c *call) take(b *body, times int64) {
	products, rest, inner := b.iteration()
	c.flops = (b.flops + rest) * units.FLOPs(times)
	switch {
	case times > graph.MaxRepeats:
		c.fail("its body runs %d times", times)
	case times > 0:
		c.products = products
		c.repeats = min(inner, graph.MaxRepeats/times) * times
		c.kernels = int64(min(math.Ceil(b.kernels/float64(inner)), float64(graph.MaxRepeats/c.repeats)))
	}
	if len(c.products) > 0 {
		c.arithmetic = &b.dtype
	}
	x := float64(b.bytes) * float64(times)
	if !(x < float64(graph.MaxBytes)) {
		c.fail("its body moves %.3g bytes", x)
	}
	c.bytes, c.workspace, c.resident, c.params = units.Bytes(x), b.workspace, b.resident, b.params
}

// iteration returns the products of one iteration of b, arithmetic that these lack of all
// iterations, and the number of iterations: b itself is one, unless a node in it repeats.
// Then they are those of the products with the most arithmetic, and other products are
// spread over them.
func (b *body) iteration() (products []graph.GEMM, rest units.FLOPs, repeats int64) {
	var total, most units.FLOPs
	var dearest repeated
	for _, p := range b.products {
		products = append(products, p.GEMM)
		f := p.FLOPs() * units.FLOPs(p.times)
		if total += f; f > most {
			dearest, most = p, f
		}
	}
	switch {
	case b.repeats < 2:
		return products, 0, 1
	case len(products) == 0:
		return nil, 0, b.repeats
	}
	g, times := dearest.GEMM, units.FLOPs(dearest.times)
	if total > most {
		g = grow(g, float64(total/most))
	}
	return []graph.GEMM{g}, max(total-g.FLOPs()*times, 0), dearest.times
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
			return nil, nil, fmt.Errorf("graph %s: initializer %q: %w", name, brief(x.name), err)
		}
		s.tensors[x.name] = t
		if t.elem.known() {
			resident += t.elem.bytes(t.elements())
		}
		if l := found[x.name]; l.isWeight(t.elem, t.elements()) {
			params += l.params(t.elem, t.elements())
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
			return nil, nil, fmt.Errorf("graph %s: output %q is made by no node", name, brief(g.outputs[i].name))
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
