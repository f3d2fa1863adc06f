package unit

import (
	"cmp"
	"slices"

	"placer/graph"
)

// chains assigns the cells of one direction, numbered in order, to chains;
// reads[c] lists the weights cells that cell c reads, heaviest first, and
// weight[c] is what the cell stands for. It returns the chain of each cell and
// which chains are stretches of cells that are alone with their weights.
func (f *finder) chains(cells *quotient, reads [][]int32, weight []float64, target float64) (chain []int32, stretch []bool) {
	n := int32(len(reads))
	chain = make([]int32, n)
	uses := map[int32]int{}
	for _, r := range reads {
		if len(r) > 0 {
			uses[r[0]]++
		}
	}
	number := map[int32]int32{} // main weights cell -> chain
	open := func(isStretch bool) int32 {
		stretch = append(stretch, isStretch)
		return int32(len(stretch) - 1)
	}
	for c := range n {
		chain[c] = -1
		if r := reads[c]; len(r) > 0 && uses[r[0]] > 1 {
			x, ok := number[r[0]]
			if !ok {
				x = open(false)
				number[r[0]] = x
			}
			chain[c] = x
		}
	}
	// Cells without weights repeat when as many ops of the same kinds read the same
	// chains, directly or through one more such cell.
	near := make([]uint64, n) // of cells without weights that read a chain; else 0
	for c := range n {
		if chain[c] < 0 && len(reads[c]) == 0 {
			near[c] = signature(cells.kinds[c], cells.pred.of(c), func(p int32) (uint64, bool) {
				return uint64(chain[p]), chain[p] >= 0
			})
		}
	}
	sign := map[uint64][]int32{}
	var order []uint64
	for c := range n {
		if chain[c] >= 0 || len(reads[c]) > 0 {
			continue
		}
		s := signature(near[c], cells.pred.of(c), func(p int32) (uint64, bool) { return near[p], near[p] != 0 })
		if s == 0 {
			s = near[c]
		}
		if s == 0 {
			continue
		}
		if sign[s] == nil {
			order = append(order, s)
		}
		sign[s] = append(sign[s], c)
	}
	for _, s := range order {
		if cs := sign[s]; len(cs) > 1 {
			x := open(false)
			for _, c := range cs {
				chain[c] = x
			}
		}
	}
	var alone []int32
	for c := range n {
		if chain[c] < 0 {
			alone = append(alone, c)
		}
	}
	for _, run := range stretches(cells, alone, weight, target) {
		x := open(true)
		for _, c := range run {
			chain[c] = x
		}
	}
	return chain, stretch
}

// signature hashes h and the distinct values of preds; 0 means that none of them
// has one.
func signature(h uint64, preds []int32, value func(int32) (uint64, bool)) uint64 {
	var vs []uint64
	for _, p := range preds {
		if v, ok := value(p); ok && !slices.Contains(vs, v) {
			vs = append(vs, v)
		}
	}
	if len(vs) == 0 {
		return 0
	}
	slices.Sort(vs)
	for _, v := range vs {
		h = mix(h, v)
	}
	return max(h, 1)
}

// mix hashes x into h (the finalizer of SplitMix64).
func mix(h, x uint64) uint64 {
	h = (h ^ x) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// quotient is the graph of the cells of one direction.
type quotient struct {
	pred, succ lists
	kinds      []uint64 // [cells] hash of the kinds of a cell's ops, in any order
	// crossing[c] counts the ops of cells before c whose results cells from c on
	// read.
	crossing []int32
}

// quotient returns the graph of the cells of w.
func (f *finder) quotient(w *flow, cell []int32, n int32) *quotient {
	q := &quotient{kinds: make([]uint64, n), crossing: make([]int32, n+1)}
	type edge struct{ from, to int32 }
	var edges []edge
	for k, i := range w.ops {
		c := cell[k]
		q.kinds[c] += mix(uint64(f.kind(i)), 0)
		last := c
		for _, s := range w.succ.of(int32(k)) {
			if d := cell[s]; d != c {
				edges = append(edges, edge{c, d})
				last = max(last, d)
			}
		}
		if last > c {
			q.crossing[c+1]++
			if last < n {
				q.crossing[last+1]--
			}
		}
	}
	for c := range n {
		q.crossing[c+1] += q.crossing[c]
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	q.succ.at = make([]int32, n+1)
	for _, e := range slices.Compact(edges) {
		q.succ.at[e.from+1]++
		q.succ.to = append(q.succ.to, e.to)
	}
	for c := range n {
		q.succ.at[c+1] += q.succ.at[c]
	}
	q.pred = invert(&q.succ, int(n))
	return q
}

// kind numbers the kinds of the graph.
func (f *finder) kind(i graph.OpID) int32 {
	k := f.g.Op(i).Kind
	x, ok := f.kindNumber[k]
	if !ok {
		x = int32(len(f.kindNumber))
		f.kindNumber[k] = x
	}
	return x
}
