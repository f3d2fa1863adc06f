package hlo

import (
	"fmt"
	"slices"
	"strconv"

	"placer/graph/formats/foreign"
)

// maxTrips bounds a loop.
const maxTrips = 1 << 40

// tripsOf returns how often a loop runs: what the caller says, what XLA has noted, or
// what a counted loop shows: a variable that starts at a constant, grows or shrinks by a
// constant and is compared with a constant.
func (b *builder) tripsOf(x *instruction) (int64, error) {
	n, ok := b.trips[x.name]
	if !ok && x.attr.trips > 0 {
		n, ok = x.attr.trips, true
	}
	if !ok {
		n, ok = x.counted()
	}
	if !ok {
		return 0, fmt.Errorf("a loop that runs an unknown number of times: state it by --dim %s=N", foreign.Brief(x.name))
	}
	if n < 0 || n > maxTrips {
		return 0, fmt.Errorf("a loop that runs %d times, want at most %d", n, int64(maxTrips))
	}
	return n, nil
}

// counted returns the trip count of a counted loop.
func (x *instruction) counted() (int64, bool) {
	if len(x.called) != 2 {
		return 0, false
	}
	var cond, body *computation
	for _, c := range x.called { // the condition gives one truth value
		if c.root != nil && !c.root.shape.is && c.root.opcode == "compare" && cond == nil {
			cond = c
		} else {
			body = c
		}
	}
	if cond == nil || body == nil || len(cond.root.operands) != 2 || body.root == nil {
		return 0, false
	}
	at, ok := loopVariable(cond.root.operands[0])
	if !ok {
		return 0, false
	}
	limit, ok := x.constant(cond.root.operands[1])
	if !ok {
		return 0, false
	}
	start, ok := constantOf(x.initial(at))
	if !ok {
		return 0, false
	}
	step, ok := body.step(at)
	if !ok {
		return 0, false
	}
	direction := cond.root.attr.direction
	if step < 0 { // counted down: the same from the other side
		step, start, limit = -step, -start, -limit
		direction = map[string]string{"GT": "LT", "GE": "LE"}[direction]
	}
	switch direction {
	case "LT":
	case "LE":
		limit++
	default:
		return 0, false
	}
	if step < 1 {
		return 0, false
	}
	return max((limit-start+step-1)/step, 0), true
}

// invariants reports which variables of a loop no iteration changes, such as the weights of
// all layers; nil where there are none, or x is no loop.
func (x *instruction) invariants() []bool {
	if x.opcode != "while" || !x.shape.is || x.shape.leaves() != len(x.shape.tuple) {
		return nil
	}
	kept, n := make([]bool, len(x.shape.tuple)), 0
	for _, c := range x.called {
		if c.root == nil || c.root.opcode != "tuple" || len(c.root.operands) != len(kept) {
			continue
		}
		for k, next := range c.root.operands {
			at, ok := loopVariable(next)
			if !ok || at != int64(k) {
				continue
			}
			own := next // not a variable of a loop around it
			if next.opcode == "get-tuple-element" {
				own = next.operands[0]
			}
			if slices.Contains(c.list, own) {
				kept[k] = true
				n++
			}
		}
	}
	if n == 0 || n >= len(kept) {
		return nil
	}
	return kept
}

// loopVariable returns which variable of the loop x is.
func loopVariable(x *instruction) (int64, bool) {
	switch {
	case x.opcode == "parameter" && !x.shape.is:
		return x.attr.index, true
	case x.opcode == "get-tuple-element" && len(x.operands) == 1 && x.operands[0].opcode == "parameter":
		return x.attr.index, true
	}
	return 0, false
}

// initial returns what the loop starts variable k from; nil where it is not seen.
func (x *instruction) initial(k int64) *instruction {
	from := x.operands
	if len(from) == 1 && from[0].opcode == "tuple" {
		from = from[0].operands
	}
	if k < 0 || k >= int64(len(from)) {
		return nil
	}
	return from[k]
}

// constant is constantOf, or the constant that a variable that the loop passes on
// starts from.
func (x *instruction) constant(c *instruction) (int64, bool) {
	if n, ok := constantOf(c); ok {
		return n, true
	}
	if k, ok := loopVariable(c); ok {
		return constantOf(x.initial(k))
	}
	return 0, false
}

// constantOf returns the integer that x is, through copies and conversions.
func constantOf(x *instruction) (int64, bool) {
	for range 8 {
		if x == nil {
			return 0, false
		}
		switch x.opcode {
		case "constant":
			n, err := strconv.ParseInt(x.attr.literal, 10, 62)
			return n, err == nil
		case "copy", "convert", "reshape", "bitcast":
			if len(x.operands) != 1 {
				return 0, false
			}
			x = x.operands[0]
		default:
			return 0, false
		}
	}
	return 0, false
}

// step returns by how much variable k grows in one execution of the body.
func (c *computation) step(k int64) (int64, bool) {
	next := c.root
	if next.opcode == "tuple" {
		if k >= int64(len(next.operands)) {
			return 0, false
		}
		next = next.operands[k]
	}
	if (next.opcode != "add" && next.opcode != "subtract") || len(next.operands) != 2 {
		return 0, false
	}
	for i, from := range next.operands {
		if at, ok := loopVariable(from); ok && at == k {
			n, ok := constantOf(next.operands[1-i])
			if next.opcode == "subtract" {
				return -n, ok && i == 0
			}
			return n, ok
		}
	}
	return 0, false
}
