package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// inliner replaces calls of model-local functions by the nodes of their bodies.
type inliner struct {
	model *model
	taken map[string]bool  // names of tensors of the main graph, and those handed out
	size  map[string]int64 // by key of a function: nodes of its body, written out
	stack []string         // keys of the functions whose size is being found
	calls int
}

// inline writes out every call of a function that m defines, in its graph and in the
// subgraphs of nodes: the tensors of a body get the name of the call before their own,
// its nodes too. Operators with a rule of their own stay as they are. Functions that
// call one another in a ring are refused by name. It returns how many calls there
// were.
func inline(m *model) (calls int, err error) {
	if len(m.functions) == 0 {
		return 0, nil
	}
	x := &inliner{model: m, taken: map[string]bool{}, size: map[string]int64{}}
	if n, err := x.count(m.graph.nodes); err != nil {
		return 0, err
	} else if n > int64(maxInner+len(m.graph.nodes)) {
		return 0, fmt.Errorf("subgraphs and functions come to more than %d nodes", maxInner)
	}
	for i := range m.graph.nodes {
		for _, names := range [][]string{m.graph.nodes[i].in, m.graph.nodes[i].out} {
			for _, name := range names {
				x.taken[name] = true
			}
		}
	}
	m.graph.nodes, err = x.expand(m.graph.nodes)
	return x.calls, err
}

// function returns the function that n calls and its key; nil for other nodes.
func (x *inliner) function(n *node) (*function, string) {
	key := n.key()
	if _, ruled := rules[key]; ruled || key == "If" || key == "Loop" || key == "Scan" {
		return nil, key
	}
	return x.model.functions[key], key
}

// count returns how many nodes there are when all calls are written out, those of
// subgraphs included. It refuses functions that call one another in a ring.
func (x *inliner) count(nodes []node) (total int64, err error) {
	for i := range nodes {
		n := &nodes[i]
		more := int64(1)
		for k := range n.attrs {
			if g := n.attrs[k].graph; g != nil {
				inner, err := x.count(g.nodes)
				if err != nil {
					return 0, err
				}
				more += inner
			}
		}
		fn, key := x.function(n)
		if fn != nil {
			size, found := x.size[key]
			if at := slices.Index(x.stack, key); at >= 0 {
				return 0, fmt.Errorf("%s: %s", n.place(i), ring(append(slices.Clone(x.stack[at:]), key)))
			}
			if !found {
				x.stack = append(x.stack, key)
				if size, err = x.count(fn.nodes); err != nil {
					return 0, err
				}
				x.stack = x.stack[:len(x.stack)-1]
				x.size[key] = size
			}
			more += size
		}
		total = min(total+more, math.MaxInt32)
	}
	return total, nil
}

// ring says in words that the functions keys, the first of which is the last too, call
// one another.
func ring(keys []string) string {
	for k := range keys {
		keys[k] = brief(keys[k])
	}
	if len(keys) == 2 {
		return fmt.Sprintf("function %s calls itself", keys[0])
	}
	return "functions call one another in a ring: " + strings.Join(keys, " calls ")
}

// expand returns nodes with every call in them written out.
func (x *inliner) expand(nodes []node) ([]node, error) {
	var out []node
	for i := range nodes {
		n := nodes[i]
		n.attrs = slices.Clone(n.attrs)
		for k := range n.attrs {
			if g := n.attrs[k].graph; g != nil {
				inner := *g
				var err error
				if inner.nodes, err = x.expand(g.nodes); err != nil {
					return nil, fmt.Errorf("%s: graph %s: %w", nodes[i].place(i), brief(n.attrs[k].name), err)
				}
				n.attrs[k].graph = &inner
			}
		}
		fn, _ := x.function(&n)
		if fn == nil {
			out = append(out, n)
			continue
		}
		body, err := x.call(&n, fn, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nodes[i].place(i), err)
		}
		out = append(out, body...)
	}
	return out, nil
}

// call returns the nodes of the body of fn for the call n, node i of its graph.
func (x *inliner) call(n *node, fn *function, i int) ([]node, error) {
	if len(n.in) > len(fn.inputs) || len(n.out) > len(fn.outputs) {
		return nil, fmt.Errorf("function %s has %d inputs and %d outputs, the call has %d and %d", brief(fn.name), len(fn.inputs), len(fn.outputs), len(n.in), len(n.out))
	}
	x.calls++
	label := n.name
	if clean(label) == "" {
		label = fmt.Sprintf("%s_%d", n.op, i)
	}
	given := map[string]*attribute{}
	for _, list := range [][]attribute{fn.attrs, n.attrs} {
		for k := range list {
			given[list[k].name] = &list[k]
		}
	}
	rename := map[string]string{"": ""}
	for k, name := range fn.inputs {
		rename[name] = ""
		if k < len(n.in) {
			rename[name] = n.in[k]
		}
	}
	var passed []node // outputs of the function that are its inputs, or others of its outputs
	for k, name := range n.out {
		if name == "" {
			continue
		}
		if from, there := rename[fn.outputs[k]]; there {
			passed = append(passed, node{name: "Identity", op: "Identity", in: []string{from}, out: []string{name}})
			continue
		}
		rename[fn.outputs[k]] = name
	}
	body := bind(fn.nodes, given)
	made := map[string]bool{}
	for j := range body {
		for _, name := range body[j].out {
			if made[name] = true; rename[name] == "" && name != "" {
				rename[name] = x.fresh(label + "/" + name)
			}
		}
	}
	for k := range n.out {
		if name := fn.outputs[k]; !made[name] && !slices.Contains(fn.inputs, name) {
			return nil, fmt.Errorf("function %s: output %q is made by no node", brief(fn.name), brief(name))
		}
	}
	for j := range body {
		b := &body[j]
		for _, name := range b.in {
			if _, there := rename[name]; !there {
				return nil, fmt.Errorf("function %s: %s: input %q is made by no node or input of the function", brief(fn.name), b.place(j), brief(name))
			}
		}
		renameNode(b, rename)
		if b.name == "" {
			b.name = fmt.Sprintf("%s_%d", b.op, j)
		}
		b.name = label + "/" + b.name
		within(b, fn.opsets)
		b.module = strings.TrimPrefix(n.module+"."+clean(label), ".")
	}
	for j := range passed {
		passed[j].name, passed[j].module = label+"/"+passed[j].name, strings.TrimPrefix(n.module+"."+clean(label), ".")
	}
	out, err := x.expand(body)
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", brief(fn.name), err)
	}
	return append(out, passed...), nil
}

// fresh returns want, or want with the first free number, which no other tensor has.
func (x *inliner) fresh(want string) string {
	name := want
	for k := 1; x.taken[name]; k++ {
		name = want + "_" + strconv.Itoa(k)
	}
	x.taken[name] = true
	return name
}

// renameNode renames the tensors of n and those that its subgraphs read from outside.
func renameNode(n *node, rename map[string]string) {
	to := func(names []string) []string {
		names = slices.Clone(names)
		for k, name := range names {
			if s, ok := rename[name]; ok {
				names[k] = s
			}
		}
		return names
	}
	n.in, n.out = to(n.in), to(n.out)
	n.attrs = slices.Clone(n.attrs)
	for k := range n.attrs {
		if n.attrs[k].graph == nil {
			continue
		}
		g := *n.attrs[k].graph
		inner := maps.Clone(rename) // without the names that the subgraph has itself
		for i := range g.inputs {
			delete(inner, g.inputs[i].name)
		}
		for i := range g.inits {
			delete(inner, g.inits[i].name)
		}
		for i := range g.nodes {
			for _, name := range g.nodes[i].out {
				delete(inner, name)
			}
		}
		g.nodes, g.outputs = slices.Clone(g.nodes), slices.Clone(g.outputs)
		for i := range g.nodes {
			renameNode(&g.nodes[i], inner)
		}
		for i := range g.outputs {
			if s, ok := inner[g.outputs[i].name]; ok {
				g.outputs[i].name = s
			}
		}
		n.attrs[k].graph = &g
	}
}

// within makes opsets those of n and of the nodes of its subgraphs, which renameNode has
// copied.
func within(n *node, opsets map[string]int64) {
	n.opsets = opsets
	for k := range n.attrs {
		if g := n.attrs[k].graph; g != nil {
			for i := range g.nodes {
				within(&g.nodes[i], opsets)
			}
		}
	}
}

// bind returns a copy of nodes in which references to attributes of the
// function are replaced by the call's attributes, or left out where the call
// has none.
func bind(nodes []node, given map[string]*attribute) []node {
	out := slices.Clone(nodes)
	for i := range out {
		n := &out[i]
		n.in, n.out = slices.Clone(n.in), slices.Clone(n.out)
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
