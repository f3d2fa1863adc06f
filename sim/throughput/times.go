package throughput

// Longest returns the longest time of block b on any class.
func (x *Instance) Longest(b int32) (s float64) {
	for c := range x.Classes {
		s = max(s, x.Classes[c].Seconds[b])
	}
	return s
}
