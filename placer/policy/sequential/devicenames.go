package sequential

import "slices"

// deviceNames gives devices the names of their first use where all are alike, as the
// rule for empty devices does.
type deviceNames []int32

func newDeviceNames(s *instance) deviceNames {
	names := deviceNames(filled(s.d))
	for d := range names {
		if !s.uniform {
			names[d] = int32(d)
		}
	}
	return names
}

// of returns the name of d; number, [D], tells which names are taken.
func (n deviceNames) of(d int32, number []int32) int32 {
	if n[d] == none {
		n[d] = int32(slices.Index(number, none))
	}
	return n[d]
}
