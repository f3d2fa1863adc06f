package unit

import (
	"fmt"
	"slices"
	"strconv"

	"placer/graph"
	"placer/units"
)

// Coarsened is a graph of fewer nodes that behaves much like another one: a
// node is the part of a unit that runs between two visits of other units. A
// method may search on it and confirm what it finds on the original.
type Coarsened struct {
	Graph *graph.Graph
	Of    []int32 // [N] op -> node, as an id of Graph
	Ops   [][]graph.OpID
	units *Partition
	of    []int32 // [nodes] node -> unit
}

// Coarsen returns g coarsened to the units of p. An op's depth is the largest
// number of changes of unit on a path to it; the ops of one depth of a unit are a
// node, so that nodes form no cycle. Tensors of one node that go to the same nodes
// become one; perTensor is added to its bytes for each tensor beyond the first,
// and should be the bytes that a link could carry in its latency. What constants
// give to other units is left out, and so is the memory of tensors that do not
// leave their node, but for the largest.
func Coarsen(g *graph.Graph, p *Partition, perTensor units.Bytes) (*Coarsened, error) {
	return coarsen(g, p, perTensor, depths)
}

// CoarsenFinely is Coarsen with up to twice as many nodes, whose steps are more like those
// of g: the ops of a node also have one height, the largest number of changes of unit on a
// path from them to the end, and wait for the same nodes of the depth before theirs.
func CoarsenFinely(g *graph.Graph, p *Partition, perTensor units.Bytes) (*Coarsened, error) {
	return coarsen(g, p, perTensor, visits)
}

func coarsen(g *graph.Graph, p *Partition, perTensor units.Bytes, phases func(*graph.Graph, *Partition, []bool) []phase) (*Coarsened, error) {
	c := &Coarsened{units: p, Of: make([]int32, g.NumOps())}
	constant := constants(g)
	number := c.nodes(constant, phases(g, p, constant))
	bundles, inner := c.bundles(g, perTensor, constant, number)
	b := graph.NewBuilder(g.Name())
	b.Grow(int(number), len(bundles))
	outs, in := ports(bundles, number)
	for v := range number {
		b.Op(graph.Op{Name: strconv.Itoa(int(v)), Kind: "Coarsened", Forward: graph.None}, in[v], outs[v]...)
	}
	for i := range g.NumOps() {
		o, v := g.Op(graph.OpID(i)), b.At(graph.OpID(c.Of[i]))
		v.FLOPs += o.FLOPs
		v.Bytes += o.Bytes
		v.Resident += o.Resident
		v.Workspace = max(v.Workspace, o.Workspace)
		for _, q := range g.Control(graph.OpID(i)) {
			if from, to := c.Of[q], c.Of[i]; from != to && !constant[q] {
				b.Control(graph.OpID(from), graph.OpID(to))
			}
		}
	}
	for v, x := range inner {
		b.At(graph.OpID(v)).Workspace += x
	}
	h, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("coarsened graph: %w", err)
	}
	c.Graph = h
	c.renumber(b.Order())
	return c, nil
}

// ports returns, for each of a number of nodes, the tensors that it makes of the bundles,
// and the ids of those that it reads: tensors are numbered by node, in the order of bundles.
func ports(bundles []bundle, number int32) (outs [][]graph.Tensor, in [][]graph.TensorID) {
	made, read := make([]int32, number), make([]int32, number)
	reads := 0
	for _, x := range bundles {
		made[x.from]++
		reads += len(x.to)
		for _, v := range x.to {
			read[v]++
		}
	}
	allOuts, allIn := make([]graph.Tensor, len(bundles)), make([]graph.TensorID, reads)
	outs, in = make([][]graph.Tensor, number), make([][]graph.TensorID, number)
	first := make([]graph.TensorID, number) // tensor of each node
	at := graph.TensorID(0)
	for v := range number {
		n, m := made[v], read[v]
		first[v], at = at, at+graph.TensorID(n)
		outs[v], allOuts = allOuts[:0:n], allOuts[n:]
		in[v], allIn = allIn[:0:m], allIn[m:]
	}
	for _, x := range bundles {
		t := first[x.from] + graph.TensorID(len(outs[x.from]))
		outs[x.from] = append(outs[x.from], graph.Tensor{Bytes: x.bytes, Resident: x.resident})
		for _, v := range x.to {
			in[v] = append(in[v], t)
		}
	}
	return outs, in
}

// constants tells which ops of g are constants that could be everywhere, [N].
func constants(g *graph.Graph) []bool {
	constant := make([]bool, g.NumOps())
	for i := range constant {
		constant[i] = everywhere(g, graph.OpID(i))
	}
	return constant
}

// everywhere reports whether op i is a constant that waits for nothing: it could
// be on every device.
func everywhere(g *graph.Graph, i graph.OpID) bool {
	return len(g.Inputs(i)) == 0 && len(g.Control(i)) == 0 && g.Op(i).Kind.Class() == graph.ClassConst
}

// nodes numbers the pairs of unit and phase and returns how many there are.
func (c *Coarsened) nodes(constant []bool, phases []phase) int32 {
	type key struct {
		unit int32
		phase
	}
	number := make(map[key]int32, 2*c.units.NumUnits())
	last, at := key{unit: none}, int32(0)
	for i, x := range phases {
		if constant[i] {
			continue
		}
		if k := (key{c.units.Of[i], x}); k != last { // neighbours are often of one node
			v, ok := number[k]
			if !ok {
				v = int32(len(number))
				number[k] = v
			}
			last, at = k, v
		}
		c.Of[i] = at
	}
	// Constants go to a node of their unit, if there is one.
	first := make([]int32, c.units.NumUnits())
	for u, ops := range c.units.Ops {
		first[u] = -1
		for _, i := range ops {
			if !constant[i] {
				first[u] = c.Of[i]
				break
			}
		}
		if first[u] < 0 {
			first[u] = int32(len(number))
			number[key{int32(u), phase{depth: none}}] = first[u]
		}
	}
	for i := range constant {
		if constant[i] {
			c.Of[i] = first[c.units.Of[i]]
		}
	}
	return int32(len(number))
}

// bundle is a set of tensors with one producing node and the same readers.
type bundle struct {
	from     int32
	to       []int32
	bytes    units.Bytes
	resident bool
}

// bundles collects the tensors that leave their node, and the size of the largest of those
// that do not, for each of a number of nodes.
func (c *Coarsened) bundles(g *graph.Graph, perTensor units.Bytes, constant []bool, number int32) (out []bundle, inner []units.Bytes) {
	last := make(map[uint64]int32, 2*number) // bundle, by hash; those before it follow by next
	var next []int32
	inner = make([]units.Bytes, number)
	readers := make([]int32, 0, g.NumEdges()) // of all bundles
tensors:
	for t := range g.NumTensors() {
		x := g.Tensor(graph.TensorID(t))
		from := c.Of[x.Producer]
		if constant[x.Producer] {
			continue
		}
		begin := len(readers)
		for _, q := range g.Consumers(graph.TensorID(t)) {
			if v := c.Of[q]; v != from {
				readers = append(readers, v)
			}
		}
		to := readers[begin:]
		if len(to) == 0 {
			if !x.Resident {
				inner[from] = max(inner[from], x.Bytes)
			}
			continue
		}
		if len(to) > 1 {
			slices.Sort(to)
			to = slices.Compact(to)
		}
		h := mix(uint64(from), 0)
		if x.Resident {
			h = mix(h, 1)
		}
		for _, v := range to {
			h = mix(h, uint64(v))
		}
		before, found := last[h]
		if !found {
			before = none
		}
		for k := before; k != none; k = next[k] {
			if y := &out[k]; y.from == from && y.resident == x.Resident && slices.Equal(y.to, to) {
				y.bytes += x.Bytes + perTensor
				readers = readers[:begin]
				continue tensors
			}
		}
		last[h] = int32(len(out))
		next = append(next, before)
		readers = readers[:begin+len(to)]
		out = append(out, bundle{from, to, x.Bytes, x.Resident})
	}
	return out, inner
}

// renumber turns the numbers given to nodes, of which order lists those of the built
// graph's ops, into ids of that graph.
func (c *Coarsened) renumber(order []graph.OpID) {
	to := make([]int32, len(order))
	for v, number := range order {
		to[number] = int32(v)
	}
	c.Ops = make([][]graph.OpID, len(to))
	c.of = make([]int32, len(to))
	size := make([]int, len(to))
	for _, number := range c.Of {
		size[to[number]]++
	}
	all := make([]graph.OpID, len(c.Of))
	for v, n := range size {
		c.Ops[v], all = all[:0:n], all[n:]
	}
	for i := range c.Of {
		v := to[c.Of[i]]
		c.Of[i] = v
		c.Ops[v] = append(c.Ops[v], graph.OpID(i))
		c.of[v] = c.units.Of[i]
	}
}

// Unit returns the unit that node v is part of.
func (c *Coarsened) Unit(v graph.OpID) int32 { return c.of[v] }

// Sum returns, for each node, the sum of x, [N], over its ops.
func (c *Coarsened) Sum(x []float64) []float64 {
	s := make([]float64, len(c.Ops))
	for i, v := range c.Of {
		s[v] += x[i]
	}
	return s
}
