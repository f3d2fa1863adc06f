package onnx

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/units"
)

// infer finds type and shape of the outputs of n and its costs, and records the
// outputs in s. The error lacks the node's place.
func (imp *importer) infer(s *scope, n *node) (c *call, err error) {
	if imp.budget--; imp.budget < 0 {
		return nil, fmt.Errorf("subgraphs and functions come to more than %d nodes", maxInner)
	}
	c = &call{imp: imp, node: n, scope: s, flops: -1, bytes: graph.Auto, kind: graph.Kind(clean(n.key()))}
	for slot, name := range n.in {
		var t *tensor
		if name != "" {
			if t = s.find(name); t == nil {
				return nil, fmt.Errorf("input %d (%q) is made by no node, input or initializer", slot, brief(name))
			}
			if t.elem == elemString {
				return nil, fmt.Errorf("input %d (%q) holds strings, which are not supported", slot, brief(name))
			}
		}
		c.in = append(c.in, t)
	}
	for range n.out {
		c.out = append(c.out, &tensor{})
	}
	if err := c.run(); err != nil {
		return nil, err
	}
	for k, name := range n.out {
		if name == "" {
			continue
		}
		t := c.out[k]
		if t.shape == nil || t.elem == elemNone {
			return nil, fmt.Errorf("output %d (%q) has no shape", k, brief(name))
		}
		if t.elem != elemString && !t.elem.known() {
			return nil, fmt.Errorf("output %d (%q) has %v, which is not known", k, brief(name), t.elem)
		}
		s.tensors[name] = t
	}
	return c, nil
}

// run calls the rule, the bodies or neither, and fills what is left open.
func (c *call) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(bail)
			if !ok {
				panic(r)
			}
			if err = b.err; b.dynamic && c.fromRecord() {
				err = nil
			} else if !b.dynamic {
				err = misfit{err}
			}
		}
	}()
	n, key := c.node, c.node.key()
	r, ok := rules[key]
	switch {
	case key == "If" || key == "Loop" || key == "Scan":
		err = c.control(key)
	case ok:
		if r.kind != "" {
			c.kind = r.kind
		}
		r.infer(c)
		c.foldNode()
	default:
		for _, a := range n.attrs {
			if a.graph != nil {
				return fmt.Errorf("operator %s runs a subgraph an unknown number of times: import the subgraph as a model of its own", brief(key))
			}
		}
		if !c.fromRecord() {
			return fmt.Errorf("operator %s is not known, and the file records no shape for its outputs", brief(key))
		}
		if _, known := graph.FactsOf(c.kind); !known {
			c.imp.unruled[brief(key)]++
		}
	}
	if err == nil {
		c.fromRecord()
	}
	return err
}

// fromRecord fills the outputs that have no shape from the shapes recorded in
// the file, and reports whether all have one then.
func (c *call) fromRecord() bool {
	all := true
	for k, name := range c.node.out {
		if name == "" || c.out[k].shape != nil {
			continue
		}
		v := c.scope.info[name]
		if v == nil || !v.tensor || !v.shaped {
			all = false
			continue
		}
		c.out[k].elem, c.out[k].shape = elem(v.elem), c.imp.resolve(v.dims, "")
		if _, err := c.out[k].shape.Elements(); err != nil {
			c.fail("output %d: %w", k, err)
		}
	}
	return all
}

// resolve gives every dimension a value. Those of the input called input are listed in
// the summary; it is empty for other tensors.
func (imp *importer) resolve(dims []dim, input string) graph.Shape {
	s := make(graph.Shape, len(dims))
	for k, d := range dims {
		s[k] = d.value
		if d.param == "" && d.value >= 0 {
			continue
		}
		name := d.param
		if name == "" && input != "" {
			name = fmt.Sprintf("%s[%d]", input, k)
		}
		v, given := imp.cfg.Dims[name]
		if given = given && name != ""; given {
			imp.dims[name] = true
		} else {
			v = imp.cfg.DefaultDim
		}
		s[k] = v
		if input != "" && !imp.listed[name] {
			imp.listed[name] = true
			imp.sum.Symbols = append(imp.sum.Symbols, Symbol{clean(name), v, given})
		}
	}
	return s
}

// value makes a tensor of an input.
func (imp *importer) value(v *valueInfo) (*tensor, error) {
	t := &tensor{elem: elem(v.elem)}
	switch {
	case !v.tensor:
		t.why = fmt.Sprintf(": %q is no tensor", brief(v.name))
		return t, nil
	case !v.shaped:
		t.why = fmt.Sprintf(": the file records none for %q", brief(v.name))
		return t, nil
	}
	t.shape = imp.resolve(v.dims, v.name)
	_, err := t.shape.Elements()
	return t, err
}

// constant makes a tensor of an initializer; the elements of weights are not
// looked at.
func (t *initializer) tensor(weight bool) (*tensor, error) {
	x := &tensor{elem: elem(t.elem), shape: append(graph.Shape{}, t.dims...)}
	if !x.elem.known() && x.elem != elemString {
		return nil, fmt.Errorf("has %v, which is not known", x.elem)
	}
	if _, err := x.shape.Elements(); err != nil {
		return nil, err
	}
	if !weight {
		x.value = t.decode()
	}
	return x, nil
}

// cost returns FLOPs and product of the op.
func (c *call) cost() (units.FLOPs, graph.GEMM) {
	if c.host {
		return 0, graph.GEMM{}
	}
	g, total := gemm(c.products)
	if c.flops >= 0 || len(c.products) > 0 {
		return total*units.FLOPs(max(c.repeats, 1)) + max(c.flops, 0), g
	}
	f, _ := graph.FactsOf(c.kind)
	n := int64(0)
	for _, t := range c.in {
		n = max(n, t.elements())
	}
	for _, t := range c.out {
		n = max(n, t.elements())
	}
	return units.FLOPs(f.FLOPsPerElement * float64(n)), g
}

// shapeArithmetic reports whether all outputs are known numbers: such ops run
// on the host, ahead of the devices.
func (c *call) shapeArithmetic() bool {
	for k, t := range c.out {
		if c.node.out[k] != "" && t.value == nil {
			return false
		}
	}
	return len(c.out) > 0
}

// dtype returns the type of the arithmetic: that of the products of a body, 8-bit
// integers for products of such, whatever their result, else that of the result if that
// has fractions, else of the first operand.
func (c *call) dtype() graph.DType {
	if c.arithmetic != nil {
		return *c.arithmetic
	}
	if integerProducts[c.kind] {
		return graph.I8
	}
	if len(c.out) > 0 && c.out[0].elem.known() && c.out[0].elem.float() {
		return c.out[0].elem.dtype()
	}
	for _, list := range [][]*tensor{c.in, c.out} {
		if len(list) > 0 && list[0] != nil && list[0].elem.known() {
			return list[0].elem.dtype()
		}
	}
	return graph.F32
}

// phase returns the part of a training step that op belongs to, given those of
// what it reads.
func phase(n *node, kind graph.Kind, before graph.Phase) graph.Phase {
	switch {
	case kind.Class() == graph.ClassUpdate && kind != "Assign":
		return graph.Update
	case strings.HasSuffix(n.op, "Grad") || strings.Contains(n.op, "Grad_"):
		return max(before, graph.Backward)
	}
	return before
}
