// Package unionfind owns disjoint sets of the numbers 0..N-1.
package unionfind

// Sets is a disjoint-set forest, [N], whose roots are the smallest members.
type Sets []int32

// New returns n sets of one member each.
func New(n int) Sets {
	s := make(Sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// Root returns the smallest member of the set of i.
func (s Sets) Root(i int32) int32 {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

// Join makes one set of those of i and j, and returns its root and that of the set
// which went into it; they are equal where i and j were of one set.
func (s Sets) Join(i, j int32) (root, gone int32) {
	i, j = s.Root(i), s.Root(j)
	root, gone = min(i, j), max(i, j)
	s[gone] = root
	return root, gone
}
