// Package digraph owns what is known of directed graphs whatever their nodes are.
package digraph

// Components returns the strongly connected component of each node and their number, in
// reverse topological order: an edge leads to a component of the same number or a lower one
// (Tarjan, SIAM J. Comput. 1, 1972, without recursion). next has the heads of each node's
// edges, [V].
func Components(next [][]int32) (of []int32, count int32) {
	n := len(next)
	of = make([]int32, n)
	entered, low := make([]int32, n), make([]int32, n)
	for v := range of {
		of[v] = -1
	}
	type frame struct {
		v int32
		k int // edges of v that were followed
	}
	var calls []frame
	var stack []int32
	clock := int32(0)
	for root := range int32(n) {
		if entered[root] > 0 {
			continue
		}
		calls = append(calls, frame{root, 0})
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.k == 0 {
				clock++
				entered[v], low[v] = clock, clock
				stack = append(stack, v)
			}
			if f.k < len(next[v]) {
				w := next[v][f.k]
				f.k++
				if entered[w] == 0 {
					calls = append(calls, frame{w, 0})
				} else if of[w] < 0 {
					low[v] = min(low[v], entered[w])
				}
				continue
			}
			if low[v] == entered[v] {
				for w := int32(-1); w != v; {
					w = stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					of[w] = count
				}
				count++
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				u := calls[len(calls)-1].v
				low[u] = min(low[u], low[v])
			}
		}
	}
	return of, count
}
