package rules

import "placer/graph"

// blocks cuts items of the given weights, in order, into at most d contiguous
// blocks whose heaviest is as light as possible, and returns the block of each
// item. Cuts come as early as that bound allows, but no block that could get an
// item is left empty.
func blocks(weight []float64, d int) []int32 {
	var low, high float64
	for _, w := range weight {
		low = max(low, w)
		high += w
	}
	low = max(low, high/float64(d))
	for range 60 { // bisection to the last bits
		mid := (low + high) / 2
		if count(weight, mid) <= d {
			high = mid
		} else {
			low = mid
		}
	}
	block := make([]int32, len(weight))
	// Filling from the end leaves the slack to the first block: like an expert, who
	// keeps embeddings with few layers.
	at, sum := int32(min(d, len(weight)))-1, 0.0
	for i := len(weight) - 1; i >= 0; i-- {
		if sum > 0 && at > 0 && (sum+weight[i] > high || i < int(at)) {
			at--
			sum = 0
		}
		block[i] = at
		sum += weight[i]
	}
	return block
}

// count returns how many blocks of at most limit hold the items; the limit is at
// least the heaviest item.
func count(weight []float64, limit float64) int {
	n, sum := 1, 0.0
	for i := len(weight) - 1; i >= 0; i-- {
		if sum > 0 && sum+weight[i] > limit {
			n++
			sum = 0
		}
		sum += weight[i]
	}
	return n
}

// byPosition cuts a graph without layers into d stages. An op's position is its
// place in the forward pass: its own, that of the forward op whose gradient it
// computes, that of the first use for what the step starts with, that of the
// variable for an update.
func byPosition(g *graph.Graph, seconds []float64, d int) []int32 {
	n := g.NumOps()
	position := make([]int32, n)
	for i := range n {
		position[i] = int32(i)
		o := g.Op(graph.OpID(i))
		switch {
		case o.Phase == graph.Forward:
		case o.Forward >= 0 && int(o.Forward) < i:
			position[i] = position[o.Forward]
		default:
			position[i] = 0
			for _, t := range g.Inputs(graph.OpID(i)) {
				position[i] = max(position[i], position[g.Tensor(t).Producer])
			}
		}
	}
	sources(g, position)
	weight := make([]float64, n)
	for i, at := range position {
		weight[at] += seconds[i]
	}
	block := blocks(weight, d)
	stage := make([]int32, n)
	for i, at := range position {
		stage[i] = block[at]
	}
	return stage
}

// sources moves what the step starts with (variables, constants, inputs, and what
// reads only such) to its first use in the forward pass, updates to their
// variable, and what only updates use (optimizer slots) to the update.
func sources(g *graph.Graph, position []int32) {
	n := g.NumOps()
	source := make([]bool, n)
	for i := range n {
		o := g.Op(graph.OpID(i))
		source[i] = o.FLOPs == 0 && len(g.Control(graph.OpID(i))) == 0 && o.Phase != graph.Backward
		for _, t := range g.Inputs(graph.OpID(i)) {
			source[i] = source[i] && source[g.Tensor(t).Producer]
		}
	}
	used := make([]bool, n)
	firstUse := func(i int, counts func(c graph.OpID) bool) {
		use := int32(-1)
		first, end := g.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			for _, c := range g.Consumers(t) {
				if counts(c) && (use < 0 || position[c] < use) {
					use = position[c]
				}
			}
		}
		if use >= 0 {
			position[i], used[i] = use, true
		}
	}
	for i := n - 1; i >= 0; i-- {
		if source[i] {
			firstUse(i, func(c graph.OpID) bool { return g.Op(c).Phase == graph.Forward && (!source[c] || used[c]) })
		}
	}
	for i := range n {
		if g.Op(graph.OpID(i)).Phase != graph.Update {
			continue
		}
		for _, t := range g.Inputs(graph.OpID(i)) {
			if v := g.Tensor(t).Producer; g.Op(v).Params > 0 {
				position[i] = position[v]
				break
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		if source[i] && !used[i] {
			firstUse(i, func(graph.OpID) bool { return true })
		}
	}
}
