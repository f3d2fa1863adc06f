package hlo

import (
	"placer/graph"
	"placer/units"
)

// peak returns the most that an execution of c holds at once of what it makes, in the order of the
// file: what is within kernels takes no memory, and what other computations that an instruction
// runs take, inside, is there for as long as it runs. What comes in and is given in place is not
// counted.
func (c *computation) peak(within map[*instruction]bool, inside map[*instruction]units.Bytes) (most units.Bytes) {
	last := make(map[*instruction]int, len(c.list))
	last[c.root] = len(c.list)
	for i := len(c.list) - 1; i >= 0; i-- {
		x := c.list[i]
		end := i
		if x.passes() || within[x] { // what it reads is there as long as it is
			end = max(last[x], i)
		}
		for _, reads := range [][]*instruction{x.operands, x.captured} {
			for _, from := range reads {
				last[from] = max(last[from], end)
			}
		}
	}
	free := make(map[int]units.Bytes)
	now := units.Bytes(0)
	for i, x := range c.list {
		own := units.Bytes(0)
		if x.opcode != "parameter" && x.opcode != "constant" && !x.passes() && !within[x] {
			own = x.made()
		}
		if x.opcode == "while" { // in the memory of what it begins with
			now -= free[i]
			free[i] = 0
		}
		at := max(own, inside[x]) // which makes what x gives
		if x.opcode == "while" {
			at = own + inside[x]
		}
		most = max(most, min(now+at, graph.MaxBytes))
		if end := last[x]; end > i && own > 0 {
			now = min(now+own, graph.MaxBytes)
			free[end] += own
		}
		now = max(now-free[i], 0)
	}
	return most
}

// passes reports whether x gives what it reads by another name.
func (x *instruction) passes() bool {
	switch x.opcode {
	case "tuple", "get-tuple-element", "opt-barrier":
		return true
	}
	return x.view()
}
