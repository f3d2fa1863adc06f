package unit

import (
	"slices"

	"placer/graph"
)

// weights is what becomes of the families: weights cells, numbered from 0.
type weights struct {
	cell     []int32   // [families] weights cell, or -1 where inlined
	inlined  []int32   // [families] the forward cell that takes the family in, or -1
	readers  [][]int32 // [weights cells] forward cells that read it, ascending
	seconds  []float64 // [weights cells]
	resident []int64   // [weights cells] bytes
}

// scalarBytes bounds what counts as a few numbers.
const scalarBytes = 64

// weights makes cells of the families: those that the same forward cells read
// become one. A family that is never updated and has one reader goes to that
// forward cell: nothing is gained by keeping them apart.
func (f *finder) weights(forward []int32) *weights {
	w := &weights{cell: make([]int32, f.numFamilies), inlined: make([]int32, f.numFamilies)}
	readers := make([][]int32, f.numFamilies)
	used, trained := make([]bool, f.numFamilies), make([]bool, f.numFamilies)
	seconds, resident := make([]float64, f.numFamilies), make([]int64, f.numFamilies)
	for i := range f.n {
		o := f.g.Op(graph.OpID(i))
		if x := f.family[i]; x >= 0 {
			used[x] = true
			trained[x] = trained[x] || o.Phase != graph.Forward || f.class[i] == graph.ClassUpdate
			seconds[x] += f.seconds[i]
			resident[x] += int64(o.Resident)
			continue
		}
		c := forward[i]
		if c < 0 {
			continue
		}
		for _, t := range f.g.Inputs(graph.OpID(i)) {
			p := f.g.Tensor(t).Producer
			if !f.isRead[p] && f.g.Tensor(t).Bytes <= scalarBytes {
				continue // a regulariser's loss
			}
			if x := f.family[p]; x >= 0 && !slices.Contains(readers[x], c) {
				readers[x] = append(readers[x], c)
			}
		}
	}
	same := map[uint64][]int32{} // hash of readers -> families that opened a cell
	for x := range f.numFamilies {
		w.cell[x], w.inlined[x] = -1, -1
		if !used[x] {
			continue
		}
		r := readers[x]
		slices.Sort(r)
		if !trained[x] && len(r) == 1 {
			w.inlined[x] = r[0]
			continue
		}
		h := uint64(len(r))
		for _, c := range r {
			h = mix(h, uint64(c))
		}
		for _, y := range same[h] {
			if slices.Equal(readers[y], r) && trained[x] == trained[y] {
				w.cell[x] = w.cell[y]
			}
		}
		if w.cell[x] < 0 {
			w.cell[x] = int32(len(w.readers))
			w.readers = append(w.readers, r)
			w.seconds = append(w.seconds, 0)
			w.resident = append(w.resident, 0)
			same[h] = append(same[h], x)
		}
		w.seconds[w.cell[x]] += seconds[x]
		w.resident[w.cell[x]] += resident[x]
	}
	return w
}

// coarsen returns the segment and the chain of each weights cell: one for all
// whose readers lie in one forward segment or chain, its own for any other.
func (w *weights) coarsen(segment, chain []int32) (segments, chains []int32) {
	group := func(of []int32, within []int32) []int32 {
		out := make([]int32, len(w.readers))
		number := map[[2]int32]int32{}
		for x, cells := range w.readers {
			key := [2]int32{-1, int32(x)} // its own
			for k, c := range cells {
				if k == 0 {
					key = [2]int32{of[c], -1}
				} else if of[c] != key[0] {
					key = [2]int32{-1, int32(x)}
					break
				}
			}
			if within != nil { // segments must not reach beyond their chain
				if key[0] < 0 {
					key = [2]int32{-1, int32(x)}
				} else {
					key[1] = within[x]
				}
			}
			n, ok := number[key]
			if !ok {
				n = int32(len(number))
				number[key] = n
			}
			out[x] = n
		}
		return out
	}
	chains = group(chain, nil)
	return group(segment, chains), chains
}
