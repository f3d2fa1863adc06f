package cli

import (
	"slices"
	"strings"

	"placer/placer/search"
)

// choose returns the methods of all that names lists, in the order of all; no
// names mean those that unnamed leaves.
func choose(all []search.Method, names []string, unnamed func([]search.Method) []search.Method) ([]search.Method, error) {
	if len(names) == 0 {
		return unnamed(all), nil
	}
	var known []string
	for _, m := range all {
		known = append(known, m.Name)
	}
	if i := slices.Index(names, "human"); i >= 0 && !slices.Contains(known, "human") {
		names = slices.Clone(names) // on a graph without layers, what is left of the expert's rule
		names[i] = "topological-cut"
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, usagef("unknown method %q, want some of %s", n, strings.Join(known, ","))
		}
	}
	var chosen []search.Method
	for _, m := range all {
		if slices.Contains(names, m.Name) {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}
