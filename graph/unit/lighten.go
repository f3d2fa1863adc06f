package unit

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/internal/unionfind"
)

// join merges chains that stand for little into the chain that they exchange
// most bytes with, as long as the result is not heavy, and renumbers them:
// deciding each part of a Transformer's layer by itself is more freedom than a
// search can use. weight[c] is what cell c stands for.
func (f *finder) join(w *flow, cell, chain []int32, stretch []bool, weight []float64, target float64) ([]int32, []bool) {
	n := len(stretch)
	load := make([]float64, n)
	for c, x := range chain {
		load[x] += weight[c]
	}
	edges := f.chainEdges(w, cell, chain)
	u := unionfind.New(n)
	order := make([]int32, n)
	for x := range order {
		order[x] = int32(x)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(load[a], load[b]) })
	for merged := true; merged; {
		merged = false
		bytes := make([]map[int32]int64, n) // by root
		for _, e := range edges {
			a, b := u.Root(e.a), u.Root(e.b)
			if a == b {
				continue
			}
			for range 2 {
				if bytes[a] == nil {
					bytes[a] = map[int32]int64{}
				}
				bytes[a][b] += e.bytes
				a, b = b, a
			}
		}
		taken := make([]bool, n) // a root takes part in one merge a round
		for _, x := range order {
			if u.Root(x) != x || taken[x] || load[x] >= target/2 {
				continue
			}
			best, most := int32(-1), int64(0)
			for y, b := range bytes[x] {
				if load[x]+load[y] <= 2*target && !taken[y] && (b > most || b == most && best >= 0 && y < best) {
					best, most = y, b
				}
			}
			if best < 0 {
				continue
			}
			sum, flat := load[x]+load[best], stretch[x] && stretch[best]
			u.Join(x, best)
			r := u.Root(x)
			load[r], stretch[r] = sum, flat
			taken[x], taken[best] = true, true
			merged = true
		}
	}
	number := make([]int32, n)
	var kept []bool
	for x := range number {
		if u.Root(int32(x)) == int32(x) {
			number[x] = int32(len(kept))
			kept = append(kept, stretch[x])
		}
	}
	out := make([]int32, len(chain))
	for c, x := range chain {
		out[c] = number[u.Root(x)]
	}
	return out, kept
}

type chainEdge struct {
	a, b  int32
	bytes int64
}

// chainEdges returns the bytes between chains of the flow, a pair of chains at
// most once.
func (f *finder) chainEdges(w *flow, cell, chain []int32) []chainEdge {
	where := map[graph.OpID]int32{}
	for k, i := range w.ops {
		where[i] = chain[cell[k]]
	}
	sum := map[[2]int32]int64{}
	for k, i := range w.ops {
		b := chain[cell[k]]
		for _, t := range f.g.Inputs(i) {
			x := f.g.Tensor(t)
			if a, ok := where[x.Producer]; ok && a != b {
				sum[[2]int32{min(a, b), max(a, b)}] += int64(x.Bytes)
			}
		}
	}
	edges := make([]chainEdge, 0, len(sum))
	for k, b := range sum {
		edges = append(edges, chainEdge{k[0], k[1], b})
	}
	slices.SortFunc(edges, func(x, y chainEdge) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	return edges
}
