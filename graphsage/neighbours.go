package graphsage

import "fmt"

// Neighbours lists the neighbours of N nodes: those of node v are
// Index[Start[v]:Start[v+1]].
type Neighbours struct {
	Start []int32 // [N+1]
	Index []int32
}

// Check reports whether n describes the neighbours of nodes nodes.
func (n *Neighbours) Check(nodes int) error {
	if len(n.Start) != nodes+1 {
		return fmt.Errorf("neighbours: %d starts for %d nodes, want %d", len(n.Start), nodes, nodes+1)
	}
	if n.Start[0] != 0 || int(n.Start[nodes]) != len(n.Index) {
		return fmt.Errorf("neighbours: starts run from %d to %d over %d indices", n.Start[0], n.Start[nodes], len(n.Index))
	}
	for v := range nodes {
		if n.Start[v] > n.Start[v+1] {
			return fmt.Errorf("neighbours: the list of node %d ends before it starts", v)
		}
	}
	for i, u := range n.Index {
		if u < 0 || int(u) >= nodes {
			return fmt.Errorf("neighbours: entry %d is node %d of %d", i, u, nodes)
		}
	}
	return nil
}

// Limit returns at most k neighbours of each node, evenly spread over its list,
// in the list's order; k = 0 keeps all. The paper samples at most 5; taking the
// same ones each time keeps runs reproducible.
func (n *Neighbours) Limit(k int) *Neighbours {
	if k == 0 {
		return n
	}
	l := &Neighbours{Start: make([]int32, len(n.Start))}
	for v := range len(n.Start) - 1 {
		list := n.Index[n.Start[v]:n.Start[v+1]]
		m := min(k, len(list))
		for i := range m {
			l.Index = append(l.Index, list[i*len(list)/m])
		}
		l.Start[v+1] = int32(len(l.Index))
	}
	return l
}
