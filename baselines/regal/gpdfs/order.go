package gpdfs

import (
	"math/rand/v2"
	"slices"

	"placer/baselines/regal/sched"
)

// Order returns the ops depth first, [N]: from the last op backwards, each op
// behind its inputs, of which those of larger size come first.
func Order(p *sched.Problem) []int32 {
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

// Result is a schedule.
type Result struct {
	Device []uint8
	Order  []int32 // of ops; tensors are sent when first needed
	Score  sched.Score
}

// Solve places by Partition and orders by Order. e says how the result scores.
func Solve(e *sched.Evaluator, r *rand.Rand) *Result {
	p := e.Problem()
	res := &Result{Device: Partition(p, r), Order: Order(p)}
	res.Score = e.Place(res.Device, res.Order)
	return res
}
