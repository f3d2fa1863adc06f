package cli

import (
	"slices"
	"strings"

	"placer/placer/methods"
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
	wanted := make([]bool, len(all))
	for _, n := range names {
		if strings.EqualFold(n, "human") && !slices.Contains(known, "human") {
			n = "topological-cut" // on a graph without layers, what is left of the expert's rule
		}
		k, err := methods.Match(n, known)
		if err != nil {
			return nil, usage(err)
		}
		wanted[k] = true
	}
	var chosen []search.Method
	for k, m := range all {
		if wanted[k] {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}
