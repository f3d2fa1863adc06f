package torchtrace

import (
	"cmp"
	"slices"

	"placer/graph"
)

// tree is the nodes of an execution trace, each with those that ran within it.
type tree struct {
	nodes  []etNode
	within map[int64][]int // by the number of the node around them
	known  map[string]graph.Kind
	inside map[int]content // what ran within a node, itself included
}

// content is what operators do: a product, anything but making room and giving tensors other names.
type content struct{ product, computes bool }

// maxDepth bounds operators within operators.
const maxDepth = 256

// leaves returns the operators that are ops, in the order in which they began: the innermost, but
// for what an operator whose arithmetic is known does within itself, such as making room for its
// result, and the innermost of products, in whatever operators these are.
func leaves(nodes []etNode, known map[string]graph.Kind) (list []*etNode) {
	t := &tree{nodes, map[int64][]int{}, known, map[int]content{}}
	number := map[int64]bool{}
	for i := range nodes {
		number[nodes[i].ID] = true
		t.within[nodes[i].Parent] = append(t.within[nodes[i].Parent], i)
	}
	taken := make([]bool, len(nodes))
	for i := range nodes {
		if n := &nodes[i]; !number[n.Parent] || n.Parent == n.ID {
			list = t.take(i, 0, taken, list)
		}
	}
	slices.SortStableFunc(list, func(a, b *etNode) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// take adds what becomes ops of node i and what ran within it.
func (t *tree) take(i, depth int, taken []bool, list []*etNode) []*etNode {
	if taken[i] {
		return list
	}
	taken[i] = true
	n := &t.nodes[i]
	if isOperator(n.Name) && (depth >= maxDepth || t.whole(i, depth)) {
		return append(list, n)
	}
	for _, k := range t.within[n.ID] {
		list = t.take(k, depth+1, taken, list)
	}
	return list
}

// whole reports whether operator i is an op, with all that ran within it.
func (t *tree) whole(i, depth int) bool {
	var in content
	operators := false
	for _, k := range t.within[t.nodes[i].ID] {
		operators = operators || isOperator(t.nodes[k].Name)
		c := t.content(k, depth+1)
		in.product, in.computes = in.product || c.product, in.computes || c.computes
	}
	if !operators || in.product {
		return !operators
	}
	if t.product(i) {
		return true
	}
	facts, known := graph.FactsOf(kindOf(t.known, t.nodes[i].Name))
	if known {
		return facts.Class != graph.ClassMeta
	}
	return !in.computes
}

// content returns what node i and those within it do.
func (t *tree) content(i, depth int) content {
	if c, ok := t.inside[i]; ok || depth >= maxDepth {
		return c
	}
	t.inside[i] = content{} // of what is within itself
	n := &t.nodes[i]
	var c content
	if isOperator(n.Name) {
		facts, known := graph.FactsOf(kindOf(t.known, n.Name))
		c = content{t.product(i), !known || facts.Class != graph.ClassMeta}
	}
	for k, j := range t.within[n.ID] {
		x := t.content(j, depth+1)
		if k == 0 && c.computes && t.nameless(i) { // it does what it runs
			c.computes = false
		}
		c.product, c.computes = c.product || x.product, c.computes || x.computes
	}
	t.inside[i] = c
	return c
}

// nameless reports whether operator i has no kind.
func (t *tree) nameless(i int) bool {
	_, known := graph.FactsOf(kindOf(t.known, t.nodes[i].Name))
	return !known
}

// product reports whether operator i is a matrix product.
func (t *tree) product(i int) bool {
	n := &t.nodes[i]
	in, err := n.tensors(n.Inputs, n.InS, n.InT)
	if err != nil {
		return false
	}
	out, err := n.tensors(n.Outputs, n.OutS, n.OutT)
	if err != nil {
		return false
	}
	g, _ := n.product(kindOf(t.known, n.Name), in, out)
	return !g.IsZero()
}
