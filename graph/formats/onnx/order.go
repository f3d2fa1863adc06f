package onnx

import "fmt"

// producers maps the tensors that nodes make to their nodes; it refuses two
// makers of one tensor.
func producers(nodes []node, taken func(name string) bool) (map[string]int, error) {
	by := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		for k, name := range n.out {
			if name == "" {
				continue
			}
			if first, twice := by[name]; twice {
				return nil, fmt.Errorf("%s: output %d (%q) is made by %s too", n.place(i), k, brief(name), nodes[first].place(first))
			}
			if taken(name) {
				return nil, fmt.Errorf("%s: output %d (%q) is also an input or an initializer", n.place(i), k, brief(name))
			}
			by[name] = i
		}
	}
	return by, nil
}

// topological returns the nodes in an order in which producers come first:
// that of the file where it is one, as the standard demands, else the first
// ready first. needs lists the tensors that a node reads, those of its
// subgraphs included.
func topological(nodes []node, by map[string]int, needs func(i int) []string) ([]int, error) {
	order := make([]int, 0, len(nodes))
	sorted := true
	for i := range nodes {
		order = append(order, i)
		for _, name := range needs(i) {
			if p, ok := by[name]; ok && p >= i {
				sorted = false
			}
		}
	}
	if sorted {
		return order, nil
	}
	order = order[:0]
	wait := make([]int, len(nodes))
	next := make([][]int, len(nodes))
	for i := range nodes {
		for _, name := range needs(i) {
			if p, ok := by[name]; ok {
				next[p] = append(next[p], i)
				wait[i]++
			}
		}
	}
	for i := range nodes {
		if wait[i] == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, j := range next[order[k]] {
			if wait[j]--; wait[j] == 0 {
				order = append(order, j)
			}
		}
	}
	if len(order) == len(nodes) {
		return order, nil
	}
	return nil, cycle(nodes, by, wait, needs)
}

// cycle names a node that waits for itself, and the tensors on the way.
func cycle(nodes []node, by map[string]int, wait []int, needs func(i int) []string) error {
	before := func(i int) (int, string) { // a waiting node that i waits for
		for _, name := range needs(i) {
			if p, ok := by[name]; ok && wait[p] > 0 {
				return p, name
			}
		}
		panic("onnx: a node waits for no node")
	}
	at := 0
	for wait[at] == 0 {
		at++
	}
	seen := map[int]bool{}
	for !seen[at] {
		seen[at] = true
		at, _ = before(at)
	}
	start := at
	p, name := before(at)
	path := fmt.Sprintf("reads %q", brief(name))
	for hops := 0; p != start; hops++ {
		at = p
		p, name = before(at)
		if hops < 3 {
			path += fmt.Sprintf(" of %s, which reads %q", nodes[at].place(at), brief(name))
		} else if hops == 3 {
			path += " and so on"
		}
	}
	return fmt.Errorf("%s: is part of a cycle: %s", nodes[start].place(start), path)
}
