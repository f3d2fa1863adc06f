package replan

import "math"

// assign returns, for each row of a square matrix of costs, a column of its own, so that the
// costs add up to the least: the Hungarian algorithm with potentials (Kuhn 1955; Jonker and
// Volgenant 1987), in the third power of the rows.
func assign(cost [][]int64) []int {
	n := len(cost)
	row, column := make([]int64, n+1), make([]int64, n+1) // potentials; row and column 0 are none
	of, way := make([]int, n+1), make([]int, n+1)         // the row of each column; the column before it on the path
	for i := 1; i <= n; i++ {
		of[0] = i
		j, slack, seen := 0, make([]int64, n+1), make([]bool, n+1)
		for k := range slack {
			slack[k] = math.MaxInt64
		}
		for of[j] != 0 {
			seen[j] = true
			at, least, next := of[j], int64(math.MaxInt64), 0
			for k := 1; k <= n; k++ {
				if seen[k] {
					continue
				}
				if c := cost[at-1][k-1] - row[at] - column[k]; c < slack[k] {
					slack[k], way[k] = c, j
				}
				if slack[k] < least {
					least, next = slack[k], k
				}
			}
			for k := range seen {
				if seen[k] {
					row[of[k]] += least
					column[k] -= least
				} else {
					slack[k] -= least
				}
			}
			j = next
		}
		for j != 0 {
			of[j] = of[way[j]]
			j = way[j]
		}
	}
	result := make([]int, n)
	for j := 1; j <= n; j++ {
		result[of[j]-1] = j - 1
	}
	return result
}
