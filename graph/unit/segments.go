package unit

// runLength is the aim for the number of cells of a segment in a chain of a
// repeated layer.
const runLength = 8

// segments assigns the cells of one direction to segments: in a chain, runs of
// consecutive cells of even length; in a stretch, the maximal paths on which each
// cell is the only reader, within the stretch, of the one before, which in turn
// is the only one it reads: branches.
func segments(q *quotient, chain []int32, stretch []bool) []int32 {
	n := int32(len(chain))
	size := make([]int32, len(stretch))
	for _, x := range chain {
		size[x]++
	}
	segment := make([]int32, n)
	next := int32(0)
	seen := make([]int32, len(stretch))
	current := make([]int32, len(stretch))
	for c := range n {
		x := chain[c]
		if stretch[x] {
			if p := only(q.pred.of(c), chain, x); p >= 0 && only(q.succ.of(p), chain, x) == c {
				segment[c] = segment[p]
			} else {
				segment[c] = next
				next++
			}
			continue
		}
		runs := (size[x] + runLength - 1) / runLength
		if k := seen[x]; k == 0 || k*runs/size[x] != (k-1)*runs/size[x] {
			current[x] = next
			next++
		}
		seen[x]++
		segment[c] = current[x]
	}
	return segment
}

// only returns the one cell of cs in chain x, or -1 for none or several.
func only(cs, chain []int32, x int32) int32 {
	one := int32(-1)
	for _, c := range cs {
		if chain[c] == x {
			if one >= 0 {
				return -1
			}
			one = c
		}
	}
	return one
}
