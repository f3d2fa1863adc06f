package digraph

import (
	"math/rand/v2"
	"testing"
)

// reaches says by paths of any length which nodes reach which, [V,V].
func reaches(next [][]int32) [][]bool {
	r := make([][]bool, len(next))
	for v := range r {
		r[v] = make([]bool, len(next))
		r[v][v] = true
		for _, w := range next[v] {
			r[v][w] = true
		}
	}
	for k := range r {
		for i := range r {
			for j := range r {
				r[i][j] = r[i][j] || r[i][k] && r[k][j]
			}
		}
	}
	return r
}

// TestComponents: nodes share a component where each reaches the other, and edges lead to
// lower numbers.
func TestComponents(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 500 {
		n := 1 + rng.IntN(9)
		next := make([][]int32, n)
		for range rng.IntN(2 * n) {
			v := rng.IntN(n)
			next[v] = append(next[v], int32(rng.IntN(n)))
		}
		of, count := Components(next)
		r := reaches(next)
		seen := make([]bool, count)
		for i := range n {
			seen[of[i]] = true
			for j := range n {
				if (of[i] == of[j]) != (r[i][j] && r[j][i]) {
					t.Fatalf("trial %d: nodes %d and %d of %v are in components %d and %d", trial, i, j, next, of[i], of[j])
				}
			}
			for _, w := range next[i] {
				if of[w] > of[i] {
					t.Fatalf("trial %d: an edge of %v leads from component %d to %d", trial, next, of[i], of[w])
				}
			}
		}
		for c, ok := range seen {
			if !ok {
				t.Fatalf("trial %d: component %d of %v has no node", trial, c, next)
			}
		}
	}
}
