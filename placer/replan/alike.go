package replan

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"placer/graph"
)

// mostAlike is the number of branches of a class beyond which they are left as they are.
const mostAlike = 256

// alike returns the branches of g that can take each other's place, by class: experts of a
// layer, towers of replicas. The ops of a branch stand in corresponding order. Branches have
// the same work, come from the same ops and lead to the same: the ops of a class agree in
// all that comes before and in all that comes behind, by hashes of both (colour refinement
// along the edges, as Weisfeiler and Lehman's, once each way). What is between ops that agree
// with no other is a branch.
func alike(g *graph.Graph) (classes [][][]graph.OpID) {
	n := g.NumOps()
	colour := colours(g)
	count := map[uint64]int{}
	for _, c := range colour {
		count[c]++
	}
	of := make([]int32, n) // a forest
	for i := range of {
		of[i] = int32(i)
	}
	var root func(i int32) int32
	root = func(i int32) int32 {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	single := func(i graph.OpID) bool { return count[colour[i]] == 1 }
	group := map[int32]graph.OpID{}
	for i := range graph.OpID(n) {
		if k := g.Op(i).Group; k > 0 { // shares a device, even with an op that is single
			if j, ok := group[k]; ok {
				of[root(int32(i))] = root(int32(j))
			}
			group[k] = i
		}
		if single(i) {
			continue
		}
		for q := range g.Predecessors(i) {
			if !single(q) {
				of[root(int32(i))] = root(int32(q))
			}
		}
	}
	branch, at, bound := [][]graph.OpID{}, map[int32]int{}, map[int32]bool{}
	for i := range graph.OpID(n) {
		r := root(int32(i))
		bound[r] = bound[r] || single(i)
		k, ok := at[r]
		if !ok {
			k = len(branch)
			at[r] = k
			branch = append(branch, nil)
		}
		branch[k] = append(branch[k], i)
	}
	class := map[uint64]int{}
	for _, ops := range branch {
		if bound[root(int32(ops[0]))] {
			continue
		}
		slices.SortStableFunc(ops, func(a, b graph.OpID) int { return cmp.Compare(colour[a], colour[b]) })
		key := uint64(len(ops))
		for _, i := range ops {
			key = mix(key, colour[i])
		}
		k, ok := class[key]
		if !ok {
			k = len(classes)
			class[key] = k
			classes = append(classes, nil)
		}
		classes[k] = append(classes[k], ops)
	}
	return slices.DeleteFunc(classes, func(c [][]graph.OpID) bool { return len(c) < 2 || len(c) > mostAlike })
}

// colours returns a hash of each op, [N], of all that comes before it and behind it.
func colours(g *graph.Graph) []uint64 {
	n := g.NumOps()
	own, before, behind := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	kind := map[graph.Kind]uint64{}
	for i := range graph.OpID(n) {
		o := g.Op(i)
		if _, ok := kind[o.Kind]; !ok {
			h := fnv.New64a()
			h.Write([]byte(o.Kind))
			kind[o.Kind] = h.Sum64()
		}
		x := kind[o.Kind]
		for _, v := range []uint64{math.Float64bits(float64(o.FLOPs)), uint64(o.Bytes), uint64(o.Resident), uint64(o.Workspace), uint64(o.DType), uint64(o.GEMM.Batch), uint64(o.GEMM.M), uint64(o.GEMM.N), uint64(o.GEMM.K)} {
			x = mix(x, v)
		}
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			x = mix(x, uint64(g.Tensor(t).Bytes))
		}
		own[i] = x
	}
	var beside []uint64
	all := func(x uint64) uint64 {
		slices.Sort(beside)
		for _, c := range beside {
			x = mix(x, c)
		}
		beside = beside[:0]
		return x
	}
	place := func(t graph.TensorID) uint64 { // of t among its op's outputs
		first, _ := g.Outputs(g.Tensor(t).Producer)
		return uint64(t - first)
	}
	for i := range graph.OpID(n) {
		for _, t := range g.Inputs(i) {
			beside = append(beside, mix(before[g.Tensor(t).Producer], place(t)))
		}
		for _, q := range g.Control(i) {
			beside = append(beside, mix(before[q], math.MaxUint64))
		}
		before[i] = all(own[i])
	}
	waits := make([][]graph.OpID, n) // for each op by control
	for i := range graph.OpID(n) {
		for _, q := range g.Control(i) {
			waits[q] = append(waits[q], i)
		}
	}
	for i := graph.OpID(n) - 1; i >= 0; i-- {
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			for _, c := range g.Consumers(t) {
				beside = append(beside, mix(behind[c], place(t)))
			}
		}
		for _, c := range waits[i] {
			beside = append(beside, mix(behind[c], math.MaxUint64))
		}
		behind[i] = all(own[i])
	}
	for i := range before {
		before[i] = mix(before[i], behind[i])
	}
	return before
}

// mix returns a hash of a hash and what follows.
func mix(h, x uint64) uint64 { // the finaliser of splitmix64
	h = (h ^ x) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// swapped has branches that are alike take each other's place under device, so that the fewest
// bytes move.
func (x *finder) swapped(device []uint8) []uint8 {
	out := slices.Clone(device)
	for _, class := range x.alike {
		cost := make([][]int64, len(class)) // of a branch, by the branch whose devices it takes
		for a, ops := range class {
			cost[a] = make([]int64, len(class))
			for b, like := range class {
				for k, i := range ops {
					if device[like[k]] != x.old[i] {
						cost[a][b] += int64(x.p.Graph.Op(i).Resident)
					}
				}
			}
		}
		for a, b := range assign(cost) {
			for k, i := range class[a] {
				out[i] = device[class[b][k]]
			}
		}
	}
	return out
}
