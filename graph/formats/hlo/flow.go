package hlo

import "slices"

// maxFlow bounds the instructions that are looked at for what flows into a loop's products.
const maxFlow = 1 << 20

// multiplied returns which of the values that a loop begins with flow into a product of some
// iteration, other than by a variable that is cut: one whose end is the new value of an argument.
// nil where that is not seen, which stands for all.
func (x *instruction) multiplied(cut []bool) []bool {
	var body *computation
	for _, c := range x.called {
		if c.root != nil && c.root.shape.leaves() == len(cut) && (c.root.shape.is || len(cut) == 1) {
			body = c
		}
	}
	if body == nil {
		return nil
	}
	left := maxFlow
	want := make([]bool, len(cut))
	for range len(cut) + 1 {
		flows := body.flows(want, &left)
		if len(flows) != len(cut) || left < 0 {
			return nil
		}
		more := false
		for k := range want {
			if flows[k] && !cut[k] && !want[k] {
				want[k], more = true, true
			}
		}
		if !more {
			return flows
		}
	}
	return nil
}

// flows returns which arrays among the parameters of c flow into a product, or into those of its
// results that are wanted. left is how many instructions may be looked at.
func (c *computation) flows(want []bool, left *int) []bool {
	if *left -= len(c.list); *left < 0 || len(want) != c.root.shape.leaves() {
		return nil
	}
	of := map[*instruction][]bool{c.root: slices.Clone(want)}
	mark := func(x *instruction, from int, which []bool) {
		if of[x] == nil {
			of[x] = make([]bool, x.shape.leaves())
		}
		for k, is := range which {
			if from+k < len(of[x]) {
				of[x][from+k] = of[x][from+k] || is
			}
		}
	}
	all := func(x *instruction) []bool { return slices.Repeat([]bool{true}, x.shape.leaves()) }
	byIndex := map[int64]*instruction{}
	for i := len(c.list) - 1; i >= 0; i-- {
		x := c.list[i]
		at := of[x]
		reached := slices.Contains(at, true)
		switch {
		case x.opcode == "parameter":
			byIndex[x.attr.index] = x
		case x.opcode == "tuple" && reached:
			for n, from := 0, x.operands; len(from) > 0; n, from = n+from[0].shape.leaves(), from[1:] {
				mark(from[0], 0, at[n:min(n+from[0].shape.leaves(), len(at))])
			}
		case x.opcode == "get-tuple-element" && reached:
			if len(x.operands) != 1 || x.attr.index < 0 || x.attr.index >= int64(len(x.operands[0].shape.tuple)) {
				return nil
			}
			n := 0
			for k := range x.attr.index {
				n += x.operands[0].shape.tuple[k].leaves()
			}
			mark(x.operands[0], n, at)
		case x.opcode == "call" && len(x.called) == 1 && len(x.captured) == 0:
			if at == nil {
				at = make([]bool, x.shape.leaves())
			}
			inner := x.called[0].flows(at, left)
			if inner == nil {
				return nil
			}
			for n, from := 0, x.operands; len(from) > 0 && n < len(inner); n, from = n+from[0].shape.leaves(), from[1:] {
				mark(from[0], 0, inner[n:min(n+from[0].shape.leaves(), len(inner))])
			}
		case x.opcode != "tuple" && x.opcode != "get-tuple-element" && (reached || x.multiplies(left)):
			for _, reads := range [][]*instruction{x.operands, x.captured} {
				for _, from := range reads {
					mark(from, 0, all(from))
				}
			}
		}
	}
	var flows []bool
	for k := range int64(len(byIndex)) {
		x := byIndex[k]
		if x == nil {
			return nil
		}
		if of[x] == nil {
			of[x] = make([]bool, x.shape.leaves())
		}
		flows = append(flows, of[x]...)
	}
	return flows
}

// multiplies reports whether x, or what it runs, is a product.
func (x *instruction) multiplies(left *int) bool {
	switch x.opcode {
	case "dot", "convolution", "ragged-dot":
		return true
	case "custom-call":
		return !x.library().IsZero()
	}
	for _, c := range x.inner() {
		*left -= len(c.list)
		for _, y := range c.list {
			if *left < 0 || y.multiplies(left) {
				return true
			}
		}
	}
	return false
}
