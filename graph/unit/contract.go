package unit

import (
	"fmt"
	"slices"

	"placer/graph"
	"placer/units"
)

// Contraction is a graph of fewer nodes that behaves much like another one: a
// node is the part of a unit that runs between two visits of other units. A
// method may search on it and confirm what it finds on the original.
type Contraction struct {
	Graph *graph.Graph
	Of    []int32 // [N] op -> node, as an id of Graph
	Ops   [][]graph.OpID
	units *Partition
	of    []int32 // [nodes] node -> unit
}

// Contract returns g with the units of p contracted. An op's depth is the largest
// number of changes of unit on a path to it; connected ops of one depth of a unit
// are a node, so that nodes form no cycle. Tensors of one node that go to the same nodes
// become one; perTensor is added to its bytes for each tensor beyond the first,
// and should be the bytes that a link could carry in its latency. What constants
// give to other units is left out, and so is the memory of tensors that do not
// leave their node, but for the largest.
func Contract(g *graph.Graph, p *Partition, seconds []float64, perTensor units.Bytes) (*Contraction, error) {
	c := &Contraction{units: p, Of: make([]int32, g.NumOps())}
	number := c.nodes(g, seconds)
	b := graph.NewBuilder(g.Name())
	nodes := make([]graph.Op, number)
	for v := range nodes {
		nodes[v] = graph.Op{Name: fmt.Sprint(v), Kind: "Contraction", Forward: graph.None}
	}
	for i := range g.NumOps() {
		o, v := g.Op(graph.OpID(i)), &nodes[c.Of[i]]
		v.FLOPs += o.FLOPs
		v.Bytes += o.Bytes
		v.Resident += o.Resident
		v.Workspace = max(v.Workspace, o.Workspace)
	}
	bundles := c.bundles(g, perTensor, nodes)
	outs := make([][]graph.Tensor, number)
	for _, x := range bundles {
		outs[x.from] = append(outs[x.from], graph.Tensor{Bytes: x.bytes, Resident: x.resident})
	}
	for v, o := range nodes {
		b.Op(o, nil, outs[v]...)
	}
	in := make([][]graph.TensorID, number)
	slot := make([]int, number)
	for _, x := range bundles {
		t := b.Output(graph.OpID(x.from), slot[x.from])
		slot[x.from]++
		for _, v := range x.to {
			in[v] = append(in[v], t)
		}
	}
	for v := range in {
		b.Replace(graph.OpID(v), in[v])
	}
	for i := range g.NumOps() {
		for _, q := range g.Control(graph.OpID(i)) {
			if from, to := c.Of[q], c.Of[i]; from != to && !everywhere(g, q) {
				b.Control(graph.OpID(from), graph.OpID(to))
			}
		}
	}
	h, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("contraction: %w", err)
	}
	c.Graph = h
	c.renumber(g)
	return c, nil
}

// wide is the number of operands or readers within a unit above which an op sums
// up, or serves, what runs at different times: the gradients of a variable in
// every step, a table that every step looks up.
const (
	wide = 8
	none = -1
)

// nodes numbers the nodes and returns how many there are.
func (c *Contraction) nodes(g *graph.Graph, seconds []float64) int32 {
	n := g.NumOps()
	constant := make([]bool, n)
	in, out := make([]int32, n), make([]int32, n) // edges within the unit
	edges := func(i graph.OpID, visit func(q graph.OpID)) {
		for _, t := range g.Inputs(i) {
			if q := g.Tensor(t).Producer; !constant[q] {
				visit(q)
			}
		}
		for _, q := range g.Control(i) {
			if !constant[q] {
				visit(q)
			}
		}
	}
	for i := range graph.OpID(n) {
		constant[i] = everywhere(g, i)
		edges(i, func(q graph.OpID) {
			if c.units.Of[q] == c.units.Of[i] {
				in[i]++
				out[q]++
			}
		})
	}
	depth := make([]int32, n)
	for i := range graph.OpID(n) {
		edges(i, func(q graph.OpID) {
			d := depth[q]
			if c.units.Of[q] != c.units.Of[i] || in[i] > wide || out[q] > wide {
				d++
			}
			depth[i] = max(depth[i], d)
		})
	}
	c.delay(g, constant, depth)
	// Ops of one unit and depth are a node when edges connect them, or when the
	// deepest operands from elsewhere are of one node.
	u := newUnion(n)
	type key struct{ unit, depth, from int32 }
	first := map[key]int32{}
	order := make([]graph.OpID, n)
	for i := range order {
		order[i] = graph.OpID(i)
	}
	slices.SortStableFunc(order, func(a, b graph.OpID) int { return int(depth[a] - depth[b]) })
	for lo := 0; lo < n; {
		hi := lo
		for hi < n && depth[order[hi]] == depth[order[lo]] {
			hi++
		}
		for _, i := range order[lo:hi] {
			edges(i, func(q graph.OpID) {
				if depth[q] == depth[i] && !constant[i] {
					u.join(int32(i), int32(q)) // of the same unit, or depth would differ
				}
			})
		}
		for _, i := range order[lo:hi] { // shallower nodes are complete
			from := int32(none)
			edges(i, func(q graph.OpID) {
				if depth[q] == depth[i]-1 {
					if r := u.root(int32(q)); from == none || r < from {
						from = r
					}
				}
			})
			if constant[i] || from == none && depth[i] > 0 {
				continue // connected to an op that has such an operand, or delayed
			}
			k := key{c.units.Of[i], depth[i], from}
			if j, ok := first[k]; ok {
				u.join(int32(i), j)
			} else {
				first[k] = int32(i)
			}
		}
		lo = hi
	}
	c.split(g, seconds, u)
	number := make([]int32, n)
	next := int32(0)
	home := make([]int32, c.units.NumUnits()) // a node of each unit, for constants
	for k := range home {
		home[k] = none
	}
	for i := range n {
		if constant[i] {
			continue
		}
		if u.root(int32(i)) == int32(i) {
			number[i] = next
			next++
		}
		c.Of[i] = number[u.root(int32(i))]
		if k := c.units.Of[i]; home[k] == none {
			home[k] = c.Of[i]
		}
	}
	for i := range n {
		if !constant[i] {
			continue
		}
		k := c.units.Of[i]
		if home[k] == none {
			home[k] = next
			next++
		}
		c.Of[i] = home[k]
	}
	return next
}

// splitShare is the share of a node's time from which what its most urgent result
// does not need becomes a node of its own.
const splitShare = 0.1

// split takes apart what the most urgent result of a node needs and the rest: a
// device does the first before the second, and others need not wait for all of
// it. Urgent is the result whose reader elsewhere has the longest path behind it.
// u holds the nodes; it is changed in place.
func (c *Contraction) split(g *graph.Graph, seconds []float64, u union) {
	n := g.NumOps()
	below := make([]float64, n) // longest path from the op's start
	total := make([]float64, n) // by root
	urgent := make([]float64, n)
	exit := make([]graph.OpID, n)
	for i := graph.OpID(n - 1); i >= 0; i-- {
		below[i] += seconds[i]
		for _, t := range g.Inputs(i) {
			p := g.Tensor(t).Producer
			below[p] = max(below[p], below[i])
		}
		for _, p := range g.Control(i) {
			below[p] = max(below[p], below[i])
		}
	}
	for i := range graph.OpID(n) {
		exit[i] = graph.None
		total[u.root(int32(i))] += seconds[i]
	}
	for i := range graph.OpID(n) {
		r := u.root(int32(i))
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			for _, q := range g.Consumers(t) {
				if u.root(int32(q)) != r && below[q] > urgent[r] {
					urgent[r], exit[r] = below[q], i
				}
			}
		}
	}
	need := make([]bool, n)
	for r := range graph.OpID(n) {
		if u.root(int32(r)) == int32(r) && exit[r] >= 0 {
			need[exit[r]] = true
		}
	}
	main := make([]float64, n) // by root
	for i := graph.OpID(n - 1); i >= 0; i-- {
		if !need[i] {
			continue
		}
		r := u.root(int32(i))
		main[r] += seconds[i]
		for _, t := range g.Inputs(i) {
			if p := g.Tensor(t).Producer; u.root(int32(p)) == r {
				need[p] = true
			}
		}
		for _, p := range g.Control(i) {
			if u.root(int32(p)) == r {
				need[p] = true
			}
		}
	}
	// The forest is rebuilt: two trees for each node that is split.
	root := make([]int32, n)
	for i := range root {
		root[i] = u.root(int32(i))
	}
	for i := range u {
		u[i] = int32(i)
	}
	head := make([][2]int32, n)
	for r := range head {
		head[r] = [2]int32{none, none}
	}
	for i, r := range root {
		part := 0
		if exit[r] >= 0 && !need[i] && total[r]-main[r] >= splitShare*total[r] {
			part = 1
		}
		if h := head[r][part]; h != none {
			u.join(int32(i), h)
		} else {
			head[r][part] = int32(i)
		}
	}
}

// everywhere reports whether op i is a constant that waits for nothing: it could
// be on every device.
func everywhere(g *graph.Graph, i graph.OpID) bool {
	return g.Op(i).Kind.Class() == graph.ClassConst && len(g.Inputs(i)) == 0 && len(g.Control(i)) == 0
}

// delay deepens ops that make a few numbers for their own unit alone, shape
// arithmetic, to the depth of their first consumer. Depth still grows along every
// edge from unit to unit.
func (c *Contraction) delay(g *graph.Graph, constant []bool, depth []int32) {
	n := g.NumOps()
	waited := make([]bool, n) // some op waits for it by control dependency
	for i := n - 1; i >= 0; i-- {
		id := graph.OpID(i)
		for _, q := range g.Control(id) {
			waited[q] = true
		}
		if constant[i] || waited[i] {
			continue
		}
		to, own, bytes := int32(-1), true, units.Bytes(0)
		first, end := g.Outputs(id)
		for t := first; t < end; t++ {
			bytes += g.Tensor(t).Bytes
			for _, q := range g.Consumers(t) {
				own = own && c.units.Of[q] == c.units.Of[i]
				if to < 0 || depth[q] < to {
					to = depth[q]
				}
			}
		}
		if own && to > depth[i] && bytes <= fewBytes {
			depth[i] = to
		}
	}
}

// fewBytes bounds the results of shape arithmetic.
const fewBytes = 1 << 10

// bundle is a set of tensors with one producing node and the same readers.
type bundle struct {
	from     int32
	to       []int32
	bytes    units.Bytes
	resident bool
}

// bundles collects the tensors that leave their node; the largest of those that
// do not is added to the node's workspace.
func (c *Contraction) bundles(g *graph.Graph, perTensor units.Bytes, nodes []graph.Op) []bundle {
	var out []bundle
	index := map[uint64][]int32{}
	inner := make([]units.Bytes, len(nodes))
	var to []int32
	for t := range g.NumTensors() {
		x := g.Tensor(graph.TensorID(t))
		from := c.Of[x.Producer]
		if everywhere(g, x.Producer) {
			continue
		}
		to = to[:0]
		for _, q := range g.Consumers(graph.TensorID(t)) {
			if v := c.Of[q]; v != from {
				to = append(to, v)
			}
		}
		if len(to) == 0 {
			if !x.Resident {
				inner[from] = max(inner[from], x.Bytes)
			}
			continue
		}
		slices.Sort(to)
		to = slices.Compact(to)
		h := mix(uint64(from), 0)
		if x.Resident {
			h = mix(h, 1)
		}
		for _, v := range to {
			h = mix(h, uint64(v))
		}
		found := false
		for _, k := range index[h] {
			if y := &out[k]; y.from == from && y.resident == x.Resident && slices.Equal(y.to, to) {
				y.bytes += x.Bytes + perTensor
				found = true
				break
			}
		}
		if !found {
			index[h] = append(index[h], int32(len(out)))
			out = append(out, bundle{from, slices.Clone(to), x.Bytes, x.Resident})
		}
	}
	for v := range nodes {
		nodes[v].Workspace += inner[v]
	}
	return out
}

// renumber turns the numbers given to nodes into ids of the built graph, whose
// names tell them.
func (c *Contraction) renumber(g *graph.Graph) {
	id := make(map[string]int32, c.Graph.NumOps())
	for v := range c.Graph.NumOps() {
		id[c.Graph.Op(graph.OpID(v)).Name] = int32(v)
	}
	to := make([]int32, c.Graph.NumOps())
	for v := range to {
		to[v] = id[fmt.Sprint(v)]
	}
	c.Ops = make([][]graph.OpID, len(to))
	c.of = make([]int32, len(to))
	for i := range c.Of {
		v := to[c.Of[i]]
		c.Of[i] = v
		c.Ops[v] = append(c.Ops[v], graph.OpID(i))
		c.of[v] = c.units.Of[i]
	}
}

// Unit returns the unit that node v is part of.
func (c *Contraction) Unit(v graph.OpID) int32 { return c.of[v] }

// Sum returns, for each node, the sum of x, [N], over its ops.
func (c *Contraction) Sum(x []float64) []float64 {
	s := make([]float64, len(c.Ops))
	for i, v := range c.Of {
		s[v] += x[i]
	}
	return s
}
