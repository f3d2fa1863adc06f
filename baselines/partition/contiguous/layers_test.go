package contiguous

import (
	"testing"

	"pgregory.net/rapid"
)

// Two edges are of one biconnected component exactly if no node but their common
// ones parts them: if, whatever single node is removed, what is left of both
// stays connected.
func TestBicomponents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "nodes")
		seen := map[[2]int32]bool{}
		var edges [][2]int32
		for range rapid.IntRange(1, 14).Draw(t, "edges") {
			u, v := rapid.Int32Range(0, int32(n-1)).Draw(t, "u"), rapid.Int32Range(0, int32(n-1)).Draw(t, "v")
			if e := [2]int32{u, v}; u != v && !seen[e] {
				seen[e] = true
				edges = append(edges, e)
			}
		}
		c := bicomponents(n, edges)
		for a := range edges {
			for b := range a {
				if same := inseparable(n, edges, a, b); (c[a] == c[b]) != same {
					t.Fatalf("edges %v and %v of %v are of components %d and %d, inseparable: %v", edges[a], edges[b], edges, c[a], c[b], same)
				}
			}
		}
	})
}

// inseparable removes each node in turn and asks whether an end of edge a that is
// left still reaches one of edge b.
func inseparable(n int, edges [][2]int32, a, b int) bool {
	for gone := int32(-1); gone < int32(n); gone++ {
		group := make([]int32, n)
		for v := range group {
			group[v] = int32(v)
		}
		for range edges {
			for _, e := range edges {
				if e[0] != gone && e[1] != gone {
					low := min(group[e[0]], group[e[1]])
					group[e[0]], group[e[1]] = low, low
				}
			}
		}
		left := func(e [2]int32) int32 {
			if e[0] != gone {
				return group[e[0]]
			}
			return group[e[1]]
		}
		if left(edges[a]) != left(edges[b]) {
			return false
		}
	}
	return true
}
