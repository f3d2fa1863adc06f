package throughput

import "slices"

// longest is what methods are told that an op takes, in seconds, where it cannot run, as
// the simulator is told of tables of times (package times).
const longest = 1e6

// finite returns columns with longest in place of what is longer. Those without such a time
// are shared.
func finite(columns [][]float64) [][]float64 {
	all := slices.Clone(columns)
	for d, column := range columns {
		if len(column) == 0 || slices.Max(column) <= longest {
			continue
		}
		if d > 0 && &columns[d-1][0] == &column[0] {
			all[d] = all[d-1]
			continue
		}
		all[d] = slices.Clone(column)
		for i, s := range column {
			all[d][i] = min(s, longest)
		}
	}
	return all
}

// Longest returns the longest time of block b on any class.
func (x *Instance) Longest(b int32) (s float64) {
	for c := range x.Classes {
		s = max(s, x.Classes[c].Seconds[b])
	}
	return s
}
