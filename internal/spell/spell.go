package spell

import (
	"slices"
	"strings"
)

// most is how many names Near gives at most.
const most = 4

// Near returns the names that name may be a slip for, the nearest first: those that two
// edits make of it, and those that begin with it or that it begins with, three letters at
// least. Case does not count.
func Near(name string, names []string) []string {
	type candidate struct {
		name  string
		edits int
	}
	folded := strings.ToLower(name)
	var near []candidate
	for _, n := range names {
		other := strings.ToLower(n)
		if d := Edits(folded, other); d <= 2 && d < len(name) || begins(other, folded) || begins(folded, other) {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.edits - b.edits })
	var list []string
	for _, c := range near[:min(len(near), most)] {
		list = append(list, c.name)
	}
	return list
}

// begins reports whether s begins with prefix, of three letters or more.
func begins(s, prefix string) bool { return len(prefix) >= 3 && strings.HasPrefix(s, prefix) }

// Edits returns how many bytes have to be put in, taken out or changed to make b of a
// (Levenshtein's distance).
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
