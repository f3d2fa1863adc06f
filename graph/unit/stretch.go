package unit

import (
	"math"
	"slices"

	"placer/internal/unionfind"
)

const (
	// longest is the most that a stretch may weigh, in multiples of the target, and
	// widest the most cells that it may have.
	longest, widest = 3, 2048
	// deviation and crossed weigh a stretch's squared logarithmic deviation from
	// the target against the results that cross its start: those beyond the fewest
	// that cross anywhere, in multiples of the median. With 2 and 2 a chain of equal
	// cells falls into stretches near the target, and a block of twice the target is
	// not cut where the median crosses.
	deviation, crossed = 2.0, 2.0
)

// stretches cuts the cells of alone, ascending, into runs of even weight where
// the fewest results cross, by dynamic programming, and then into the parts that
// hang together. Between blocks of a network one result crosses, within them as
// many as there are branches.
func stretches(q *quotient, alone []int32, weight []float64, target float64) [][]int32 {
	n := len(alone)
	if n == 0 {
		return nil
	}
	sum := make([]float64, n+1) // prefix sums of weight
	crossing := make([]float64, n)
	for k, c := range alone {
		sum[k+1] = sum[k] + weight[c]
		crossing[k] = float64(q.crossing[c])
	}
	sorted := slices.Sorted(slices.Values(crossing[min(1, n-1):]))
	least, median := sorted[0], sorted[len(sorted)/2]
	target = max(target, 1e-300)
	at := starts(crossing, sum[n]/target)
	cost := make([]float64, len(at))
	from := make([]int, len(at))
	for j := 1; j < len(at); j++ {
		cost[j] = math.Inf(1)
		for i := j - 1; i >= 0; i-- {
			w := (sum[at[j]] - sum[at[i]]) / target
			if (w > longest || j-i > widest) && i < j-1 {
				break
			}
			off := math.Log(max(w, 1e-3))
			x := cost[i] + deviation*off*off
			if i > 0 && crossing[at[i]] > least {
				x += crossed * (crossing[at[i]] - least) / max(median-least, 1)
			}
			if x < cost[j] {
				cost[j], from[j] = x, i
			}
		}
	}
	var runs [][]int32
	for j := len(at) - 1; j > 0; j = from[j] {
		runs = append(runs, parts(q, alone[at[from[j]]:at[j]])...)
	}
	slices.SortFunc(runs, func(a, b []int32) int { return int(a[0] - b[0]) })
	return runs
}

// starts returns where stretches may start, and as the last one the number of cells:
// everywhere, or where so many cells would come on one of the targets that a stretch
// of at most widest cells cannot reach its target, at the cell of every few whose
// start the fewest results cross.
func starts(crossing []float64, targets float64) []int {
	n := len(crossing)
	few := max(1, int(math.Ceil(float64(n)/max(targets, 1)*longest/widest)))
	at := []int{0}
	for k := few; k < n; k += few {
		best := k
		for c := k; c < min(n, k+few); c++ {
			if crossing[c] < crossing[best] {
				best = c
			}
		}
		at = append(at, best)
	}
	return append(at, n)
}

// parts splits cells, ascending, into the sets that edges among them connect.
func parts(q *quotient, cells []int32) [][]int32 {
	at := make(map[int32]int, len(cells))
	for k, c := range cells {
		at[c] = k
	}
	u := unionfind.New(len(cells))
	for k, c := range cells {
		for _, d := range q.succ.of(c) {
			if j, ok := at[d]; ok {
				u.Join(int32(k), int32(j))
			}
		}
	}
	var out [][]int32
	number := map[int32]int{}
	for k, c := range cells {
		r := u.Root(int32(k))
		x, ok := number[r]
		if !ok {
			x = len(out)
			number[r] = x
			out = append(out, nil)
		}
		out[x] = append(out[x], c)
	}
	return out
}
