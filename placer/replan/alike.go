package replan

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"placer/graph"
	"placer/graph/unit"
)

// mostAlike is the number of branches of a class beyond which they are left as they are.
const mostAlike = 256

// alike returns the branches of g that can take each other's place, by class: experts of a
// layer, towers of replicas. A branch is a list of cells, those of a class correspond. Branches
// have the same work, come from the same ops and lead to the same: their ops agree in all that
// comes before and in all that comes behind, by hashes of both (colour refinement along the
// edges, as Weisfeiler and Lehman's, once each way). Ops that launch no kernel do not count.
// What is between cells that agree with no other is a branch.
func alike(g *graph.Graph, cells *unit.Partition) (classes [][][]int32) {
	ofOp := colours(g)
	colour := make([]uint64, cells.NumUnits())
	count := map[uint64]int{}
	for u, ops := range cells.Ops {
		var real []uint64
		for _, i := range ops {
			if c := g.Op(i).Kind.Class(); c != graph.ClassMeta && c != graph.ClassConst {
				real = append(real, ofOp[i])
			}
		}
		slices.Sort(real)
		for _, c := range real {
			colour[u] = mix(colour[u], c)
		}
		count[colour[u]]++
	}
	single := func(u int32) bool { return colour[u] == 0 || count[colour[u]] == 1 }
	of := make([]int32, len(colour)) // a forest
	for u := range of {
		of[u] = int32(u)
	}
	root := func(u int32) int32 {
		for of[u] != u {
			of[u] = of[of[u]]
			u = of[u]
		}
		return u
	}
	for i := range graph.OpID(g.NumOps()) {
		u := cells.Of[i]
		for q := range g.Predecessors(i) {
			if v := cells.Of[q]; !single(u) && !single(v) {
				of[root(u)] = root(v)
			}
		}
	}
	branch, at := [][]int32{}, map[int32]int{}
	for u := range int32(len(of)) {
		if single(u) {
			continue
		}
		k, ok := at[root(u)]
		if !ok {
			k = len(branch)
			at[root(u)] = k
			branch = append(branch, nil)
		}
		branch[k] = append(branch[k], u)
	}
	class := map[uint64]int{}
	for _, us := range branch {
		slices.SortStableFunc(us, func(a, b int32) int { return cmp.Compare(colour[a], colour[b]) })
		key := uint64(len(us))
		for _, u := range us {
			key = mix(key, colour[u])
		}
		k, ok := class[key]
		if !ok {
			k = len(classes)
			class[key] = k
			classes = append(classes, nil)
		}
		classes[k] = append(classes[k], us)
	}
	return slices.DeleteFunc(classes, func(c [][]int32) bool { return len(c) < 2 || len(c) > mostAlike })
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
		if repeats, kernels := o.Iterations(); repeats*kernels > 1 {
			x = mix(mix(x, uint64(repeats)), uint64(kernels))
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
	for i := range graph.OpID(n) {
		for _, t := range g.Inputs(i) {
			beside = append(beside, mix(before[g.Tensor(t).Producer], uint64(g.Tensor(t).Bytes)))
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
				beside = append(beside, mix(behind[c], uint64(g.Tensor(t).Bytes)))
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
// bytes move. A cell goes where the first op of the other is.
func (x *finder) swapped(device []uint8) []uint8 {
	cells := x.p.Units.Levels[unit.Cell]
	out := slices.Clone(device)
	for _, class := range x.alike {
		cost := make([][]int64, len(class)) // of a branch, by the branch whose devices it takes
		for a, us := range class {
			cost[a] = make([]int64, len(class))
			for b, like := range class {
				for k, u := range us {
					for _, i := range cells.Ops[u] {
						if x.taken(device, i, like[k], a == b) != x.old[i] {
							cost[a][b] += int64(x.p.Graph.Op(i).Resident)
						}
					}
				}
			}
		}
		for a, b := range assign(cost) {
			for k, u := range class[a] {
				for _, i := range cells.Ops[u] {
					out[i] = x.taken(device, i, class[b][k], a == b)
				}
			}
		}
	}
	return out
}

// taken is the device of op i where its cell takes that of cell like, or stays as it is.
func (x *finder) taken(device []uint8, i graph.OpID, like int32, stays bool) uint8 {
	if stays {
		return device[i]
	}
	return device[x.p.Units.Levels[unit.Cell].Ops[like][0]]
}
