package contiguous

import (
	"placer/graph"
	"placer/internal/unionfind"
	"placer/sim/throughput"
)

// Layers joins ops, [N], as PipeDream's comparison of Tarnawski et al. (NeurIPS
// 2020, section 6) does before it cuts a linear order: PipeDream wants a chain, so
// what branches becomes one layer. Nodes are the forward and the backward half of
// every co-location group; in every biconnected component of the undirected graph
// of their edges, the nodes from which an edge of the component leads are joined,
// with their other halves. Edges from inputs, forward nodes of no time that read
// nothing, do not count: an attention mask that every layer reads would join
// all. The comparison's own program lists such nodes by hand for two networks,
// for GNMT one more than the inputs (docs/throughput.md).
func Layers(s throughput.Source) []int32 {
	n := halves(s)
	var edges [][2]int32
	for _, e := range n.edges {
		if !n.input[e[0]] {
			edges = append(edges, e)
		}
	}
	layers := unionfind.New(s.Graph.NumOps())
	for i, v := range n.of { // ops of one node
		layers.Join(int32(i), n.first[v])
	}
	tail := map[int32]int32{} // of each component
	for k, c := range bicomponents(len(n.first), edges) {
		u := n.first[edges[k][0]]
		if v, ok := tail[c]; ok {
			layers.Join(u, v)
		} else {
			tail[c] = u
		}
	}
	for i := range layers {
		layers[i] = layers.Root(int32(i))
	}
	return layers
}

// halfGraph is a graph whose nodes are halves of co-location groups.
type halfGraph struct {
	of    []int32 // [N] node of each op
	first []int32 // its first op
	input []bool
	edges [][2]int32 // each once
}

func halves(s throughput.Source) *halfGraph {
	g := s.Graph
	n := &halfGraph{of: make([]int32, g.NumOps())}
	type key struct {
		group    int32
		backward bool
	}
	known := map[key]int32{}
	for i := range n.of {
		o := g.Op(graph.OpID(i))
		k := key{o.Group, o.Phase != graph.Forward}
		if o.Group == 0 {
			k.group = -1 - int32(i)
		}
		v, ok := known[k]
		if !ok {
			v = int32(len(n.first))
			known[k] = v
			n.first = append(n.first, int32(i))
			n.input = append(n.input, !k.backward)
		}
		n.of[i] = v
		for d := range s.Seconds {
			n.input[v] = n.input[v] && s.Seconds[d][i] <= idleSeconds
		}
	}
	seen := map[[2]int32]bool{}
	add := func(u, v graph.OpID) {
		e := [2]int32{n.of[u], n.of[v]}
		if e[0] != e[1] && !seen[e] {
			seen[e] = true
			n.edges = append(n.edges, e)
			n.input[e[1]] = false
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		for p := range g.Predecessors(i) {
			add(p, i)
		}
	}
	return n
}

// bicomponents returns the biconnected component of each edge of an undirected
// graph of n nodes (Hopcroft and Tarjan 1973, without recursion). Edges between
// the same nodes are of one component.
func bicomponents(n int, edges [][2]int32) []int32 {
	type arc struct{ to, edge int32 }
	arcs := make([][]arc, n)
	for k, e := range edges {
		arcs[e[0]] = append(arcs[e[0]], arc{e[1], int32(k)})
		arcs[e[1]] = append(arcs[e[1]], arc{e[0], int32(k)})
	}
	entered, low := make([]int32, n), make([]int32, n)
	component := make([]int32, len(edges))
	for k := range component {
		component[k] = -1
	}
	type frame struct{ v, by, k, height int32 } // by: the edge that led here
	var calls []frame
	var stack []int32 // edges
	clock, count := int32(0), int32(0)
	used := make([]bool, len(edges))
	for start := range int32(n) {
		if entered[start] > 0 {
			continue
		}
		clock++
		entered[start], low[start] = clock, clock
		calls = append(calls, frame{start, -1, 0, 0})
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			if int(f.k) < len(arcs[f.v]) {
				a := arcs[f.v][f.k]
				f.k++
				if used[a.edge] {
					continue
				}
				used[a.edge] = true
				height := int32(len(stack))
				stack = append(stack, a.edge)
				if entered[a.to] == 0 {
					clock++
					entered[a.to], low[a.to] = clock, clock
					calls = append(calls, frame{a.to, a.edge, 0, height})
				} else {
					low[f.v] = min(low[f.v], entered[a.to])
				}
				continue
			}
			v, height := f.v, f.height
			calls = calls[:len(calls)-1]
			if len(calls) == 0 {
				continue
			}
			u := calls[len(calls)-1].v
			low[u] = min(low[u], low[v])
			if low[v] >= entered[u] {
				for _, e := range stack[height:] {
					component[e] = count
				}
				stack = stack[:height]
				count++
			}
		}
	}
	return component
}
