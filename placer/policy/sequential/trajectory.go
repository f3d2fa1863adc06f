package sequential

import "slices"

// trajectory is a placement as a level's decisions. Many are kept of graphs of many cells,
// so it takes 11 bytes a device of a decision.
type trajectory struct {
	chosen []int32   // [T]
	scores []float32 // [T,D] the network's
	tied   tiedRows  // [T,D,J]
	ok     []bool    // [T,D]
}

// tiedRows are rows of tied features, of which all but the saved share are 0 or 1.
type tiedRows struct {
	ones  []uint16  // [rows] bit j: feature j is 1
	saved []float32 // [rows]
}

// savedTied is the place of the share among the tied features.
var savedTied = slices.Index(tied, indexOf(deviceFeatures, "saved_share"))

func newTiedRows(n int) tiedRows { return tiedRows{make([]uint16, n), make([]float32, n)} }

// put stores features, [n,J], from row at on.
func (x tiedRows) put(at int, features []float32) {
	for lo := 0; lo < len(features); lo += len(tied) {
		row := features[lo : lo+len(tied)]
		x.ones[at], x.saved[at] = 0, row[savedTied]
		for j, v := range row {
			if j != savedTied && v != 0 {
				x.ones[at] |= 1 << j
			}
		}
		at++
	}
}

// get writes what put stored from row at on, [n,J].
func (x tiedRows) get(at int, features []float32) {
	for lo := 0; lo < len(features); lo += len(tied) {
		row := features[lo : lo+len(tied)]
		for j := range row {
			row[j] = float32(x.ones[at] >> j & 1)
		}
		row[savedTied] = x.saved[at]
		at++
	}
}

// tiedOf writes the tied features of decision row r, [D,J].
func (e *rollouts) tiedOf(r int, to []float32) {
	for i := range e.d {
		y := featuresOf(e.y, r*e.d+i)
		for j, at := range tied {
			to[i*len(tied)+j] = y[at]
		}
	}
}
