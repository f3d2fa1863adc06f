package onnx

import "slices"

// maxTrace bounds how many nodes the use of a constant is followed through.
const maxTrace = 64

// tables finds the constants that no step learns though they stand where a weight may:
// frequencies whose angles have sines taken, rotary sines and cosines that multiply queries
// and keys, windows and gates of positions, masks and slopes that are added to the scores of
// attention. Biases of relative positions that an exporter computed from their table are
// such too: the table is no longer in the file.
type tables struct {
	nodes   []node
	readers map[string][]int // tensor -> nodes that read it, -1 for the graph's outputs
	by      map[string]int   // tensor -> node that makes it
	fixed   map[string]bool  // tensors that depend on constants alone
	dims    map[string][]int64
	inner   map[string]bool // read by subgraphs
}

// findTables returns the constants among the initializers of g and the outputs of its Constant
// nodes that are tables. order lists the nodes, producers first.
func findTables(g *protoGraph, order []int, readers map[string][]int, by map[string]int) map[string]bool {
	t := &tables{nodes: g.nodes, readers: readers, by: by, fixed: map[string]bool{"": true}, dims: map[string][]int64{}, inner: map[string]bool{}}
	for i := range g.inits {
		x := &g.inits[i]
		t.fixed[x.name], t.dims[x.name] = true, x.dims
	}
	for _, i := range order {
		n := &g.nodes[i]
		for _, name := range captured(n) {
			t.inner[name] = true
		}
		fixed := !slices.ContainsFunc(n.in, func(name string) bool { return !t.fixed[name] }) && len(captured(n)) == 0
		_, random := randomRules[n.key()]
		for _, name := range n.out {
			t.fixed[name] = fixed && !random
		}
		if a := n.attr("value"); n.key() == "Constant" && a != nil && a.tensor != nil && len(n.out) == 1 {
			t.dims[n.out[0]] = a.tensor.dims
		}
	}
	found := map[string]bool{}
	for name, dims := range t.dims {
		left := maxTrace
		if is, other := t.uses(name, wide(dims), &left); is && !other {
			found[name] = true
		}
	}
	return found
}

// wide reports whether more than one dimension is more than 1: biases and scales of channels
// have one.
func wide(dims []int64) bool {
	n := 0
	for _, d := range dims {
		if d != 1 {
			n++
		}
	}
	return n > 1
}

// uses reports whether a constant, by that name, is used as a table, and whether it is used as
// a weight.
func (t *tables) uses(name string, wide bool, left *int) (table, weight bool) {
	if t.inner[name] {
		return false, true
	}
	for _, i := range t.readers[name] {
		if *left--; *left < 0 {
			return false, true
		}
		if i < 0 {
			continue
		}
		n := &t.nodes[i]
		key := n.key()
		for slot, read := range n.in {
			if read != name {
				continue
			}
			is, other := false, false
			switch {
			case key == "Sin" || key == "Cos":
				is = true
			case views[key] && key != "BatchNormalization" && (slot == 0 || key == "Concat"):
				for _, out := range n.out {
					a, b := t.uses(out, wide && !dequantizes[key], left) // weights are what one stores in 8 bits
					is, other = is || a, other || b
				}
			case angles[key] && t.becomesAngle(n.out, left):
				is = true
			case key == "Mul" && t.gates(n, slot, wide, left):
				is = true
			case (key == "Add" || key == "Sub") && wide && t.moving(n, slot) && t.becomesScore(n.out, left):
				is = true
			case key == "Gather" && slot == 0:
				is = t.rotates(n.out, left)
				other = !is
			default:
				other = vectorSlots[key] || slices.Contains(weightSlots[key], slot)
			}
			table, weight = table || is, weight || other
		}
	}
	return table, weight
}

// angles are the operators that make angles of frequencies and positions.
var angles = map[string]bool{"Mul": true, "Div": true, "MatMul": true, "Einsum": true, "Add": true, "Sub": true}

// becomesAngle reports whether all that is made of the tensors has its sine or cosine taken.
func (t *tables) becomesAngle(names []string, left *int) bool {
	return t.all(names, left, func(n *node, _ int) bool {
		key := n.key()
		return key == "Sin" || key == "Cos" || (angles[key] || views[key]) && t.becomesAngle(n.out, left)
	})
}

// becomesScore reports whether a tensor goes into a softmax as one of its summands.
func (t *tables) becomesScore(names []string, left *int) bool {
	for _, name := range names {
		for _, i := range t.readers[name] {
			if *left--; i < 0 || *left < 0 {
				continue
			}
			n := &t.nodes[i]
			switch key := n.key(); {
			case key == "Softmax":
				return true
			case (key == "Add" || key == "Where" || key == "Max" || key == "Clip" || key == "Mul" || key == "Div" || views[key]) && t.becomesScore(n.out, left):
				return true
			}
		}
	}
	return false
}

// all reports whether the tensors have readers, and is holds for each.
func (t *tables) all(names []string, left *int, is func(n *node, slot int) bool) bool {
	some := false
	for _, name := range names {
		for _, i := range t.readers[name] {
			if *left--; i < 0 || *left < 0 {
				return false
			}
			if n := &t.nodes[i]; !is(n, slices.Index(n.in, name)) {
				return false
			}
			some = true
		}
	}
	return some
}

// moving reports whether what n does to a constant in that slot is done with something that
// changes from step to step.
func (t *tables) moving(n *node, slot int) bool {
	return len(n.in) == 2 && !t.fixed[n.in[1-slot]]
}

// gates reports whether n multiplies what changes from step to step by a constant of more than
// a channel's numbers, or turns it, as rotary positions do. The gain of a normalisation over
// several dimensions multiplies a quotient, or what a normalisation makes.
func (t *tables) gates(n *node, slot int, wide bool, left *int) bool {
	if !t.moving(n, slot) {
		return false
	}
	if i, ok := t.by[n.in[1-slot]]; ok {
		switch t.nodes[i].key() {
		case "Div", "InstanceNormalization", "LayerNormalization", "BatchNormalization":
			return false
		}
	}
	return wide || t.turns(n, left)
}

// rotates reports whether rows of a table go through views into products with what changes
// from step to step, whose sums turn it.
func (t *tables) rotates(names []string, left *int) bool {
	return t.all(names, left, func(n *node, slot int) bool {
		if key := n.key(); views[key] && key != "BatchNormalization" {
			return t.rotates(n.out, left)
		}
		return n.key() == "Mul" && t.moving(n, slot) && t.turns(n, left)
	})
}

// turns reports whether all that reads the product n makes adds or subtracts it to or from
// another product: a rotation in a plane.
func (t *tables) turns(n *node, left *int) bool {
	return t.all(n.out, left, func(sum *node, slot int) bool {
		if key := sum.key(); key != "Add" && key != "Sub" || len(sum.in) != 2 {
			return false
		}
		i, ok := t.by[sum.in[1-slot]]
		return ok && t.nodes[i].key() == "Mul" && &t.nodes[i] != n
	})
}
