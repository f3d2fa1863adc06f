package listsched

import (
	"context"
	"fmt"

	"placer/graph"
	"placer/units"
)

// choice is the favourite child of every node.
type choice struct {
	child []int32 // [V] or none
	note  string
}

// transfer returns the time of b bytes on the mean route.
func (m *model) transfer(b units.Bytes) (seconds float64) {
	for v := range m.d {
		for w := range m.d {
			if v != w {
				seconds += float64(m.p.Machine.TransferSeconds(v, w, b)) / float64(m.d*(m.d-1))
			}
		}
	}
	return seconds
}

// favourites solves the linear program and rounds it: the favourite child of a
// node is the one whose edge is freed of its transfer by more than half. No node
// has two, and none is the favourite of two.
func (m *model) favourites(ctx context.Context) choice {
	c := choice{child: make([]int32, m.g.NumOps())}
	for v := range c.child {
		c.child[v] = none
	}
	if m.d < 2 {
		return c
	}
	p := m.program()
	free, length, exact := p.solve(ctx)
	if !exact {
		// In the optimum no path is shorter than its ops alone take.
		c.note = fmt.Sprintf("favourite children from an approximate solution of the linear program: %.4g s, at most %.1f%% above its optimum", length, 100*(length/p.floor()-1))
	}
	for k, e := range p.edges {
		if free[k] > 0.5 {
			c.child[e.from] = e.to
		}
	}
	return c
}

// program returns the program of m: nodes of mean times, and an edge for each pair
// of nodes of which one reads the other.
func (m *model) program() *program {
	n := m.g.NumOps()
	p := &program{seconds: make([]float64, n)}
	for v := range n {
		for d := range m.d {
			p.seconds[v] += m.seconds[d][v] / float64(m.d)
		}
	}
	at := map[int32]int{}
	for w := range n {
		clear(at)
		m.predecessors(graph.OpID(w), func(q graph.OpID, b units.Bytes) {
			if m.source[q] {
				return
			}
			k, ok := at[int32(q)]
			if !ok {
				k = len(p.edges)
				at[int32(q)] = k
				p.edges = append(p.edges, edge{from: int32(q), to: int32(w)})
			}
			p.edges[k].seconds += m.transfer(b)
		})
	}
	return p
}
