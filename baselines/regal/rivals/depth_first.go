package rivals

import (
	"slices"

	"placer/baselines/regal/sched"
)

// depthFirst returns the ops depth first, [N]: from the last op backwards, each op
// behind its inputs, of which those of larger size come first.
func depthFirst(p *sched.Problem) []int32 {
	seen := make([]bool, p.N())
	order := make([]int32, 0, p.N())
	type frame struct {
		op     int32
		inputs []int32
	}
	var stack []frame
	enter := func(i int32) {
		seen[i] = true
		inputs := slices.Clone(p.Inputs(i))
		slices.SortStableFunc(inputs, func(a, b int32) int { return int(p.Size(b) - p.Size(a)) })
		stack = append(stack, frame{i, inputs})
	}
	for _, root := range slices.Backward(p.Order()) {
		if seen[root] {
			continue
		}
		enter(root)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.inputs) == 0 {
				order = append(order, top.op)
				stack = stack[:len(stack)-1]
				continue
			}
			u := p.Producer(top.inputs[0])
			top.inputs = top.inputs[1:]
			if !seen[u] {
				enter(u)
			}
		}
	}
	return order
}
