package onnx

import (
	"fmt"
	"slices"
)

// function evaluates the body of a model-local function with the call's inputs
// and attributes.
func (c *call) function(fn *function) error {
	if len(c.in) > len(fn.inputs) || len(c.out) > len(fn.outputs) {
		return fmt.Errorf("function %s has %d inputs and %d outputs, the call has %d and %d", brief(fn.name), len(fn.inputs), len(fn.outputs), len(c.in), len(c.out))
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
	b, err := c.imp.evaluate(s, nodes, "function "+brief(fn.name))
	if err != nil {
		return err
	}
	for k := range c.out {
		t := s.find(fn.outputs[k])
		if t == nil {
			return fmt.Errorf("function %s: output %q is made by no node", brief(fn.name), brief(fn.outputs[k]))
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
