package fuse

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// Parts is what the time of a kernel depends on, of one op on one device.
type Parts struct {
	Compute units.Seconds // arithmetic
	PerByte float64       // seconds for each byte of its traffic with memory
	Launch  units.Seconds // whatever the size
}

// Traffic returns the bytes that op i reads and writes as part of a kernel of
// several ops, given whether another op is of the same kernel.
//
// What the kernel has computed it does not read, and what nothing else reads it
// does not write; readers that look at shapes alone do not count. A view is
// another name of its first input: it moves nothing, and what is read by the name
// is read.
func Traffic(g *graph.Graph, role []graph.FuseRole, i graph.OpID, inside func(graph.OpID) bool) (b units.Bytes) {
	if role[i] == graph.FuseView {
		return 0
	}
	b = g.Op(i).Bytes
	in := g.Inputs(i)
	for k, t := range in {
		if !slices.Contains(in[:k], t) && inside(maker(g, role, t, inside)) {
			b -= g.Tensor(t).Bytes
		}
	}
	first, end := g.Outputs(i)
	for t := first; t < end; t++ {
		if !writes(g, role, t, inside) {
			b -= g.Tensor(t).Bytes
		}
	}
	return max(b, 0)
}

// Written returns the part of Traffic that is written: the outputs that the
// kernel does not keep to itself.
func Written(g *graph.Graph, role []graph.FuseRole, i graph.OpID, inside func(graph.OpID) bool) (b units.Bytes) {
	if role[i] == graph.FuseView {
		return 0
	}
	first, end := g.Outputs(i)
	for t := first; t < end; t++ {
		if writes(g, role, t, inside) {
			b += g.Tensor(t).Bytes
		}
	}
	return min(b, Traffic(g, role, i, inside))
}

// Held reports whether tensor t, made by an op of a kernel, takes memory: not if
// the kernel reads it and nothing outside reads more than its shape.
func Held(g *graph.Graph, t graph.TensorID, inside func(graph.OpID) bool) bool {
	own := false
	for _, v := range g.Consumers(t) {
		if inside(v) {
			own = true
		} else if f, _ := graph.FactsOf(g.Op(v).Kind); !f.ReadsShape {
			return true
		}
	}
	return !own
}

// writes reports whether a kernel writes the tensor t that it makes: the kernel
// does not read it, its data is read outside, or it is a variable's new value.
func writes(g *graph.Graph, role []graph.FuseRole, t graph.TensorID, inside func(graph.OpID) bool) bool {
	return g.Tensor(t).Resident || !slices.ContainsFunc(g.Consumers(t), inside) || leaves(g, role, t, inside)
}

// maker returns the op that makes the data of tensor t, views of the kernel
// passed by.
func maker(g *graph.Graph, role []graph.FuseRole, t graph.TensorID, inside func(graph.OpID) bool) graph.OpID {
	p := g.Tensor(t).Producer
	for inside(p) && role[p] == graph.FuseView {
		p = g.Tensor(g.Inputs(p)[0]).Producer
	}
	return p
}

// leaves reports whether the data of tensor t, made within the kernel, is read
// outside, by its own name or that of a view.
func leaves(g *graph.Graph, role []graph.FuseRole, t graph.TensorID, inside func(graph.OpID) bool) bool {
	for _, v := range g.Consumers(t) {
		if !inside(v) {
			if f, _ := graph.FactsOf(g.Op(v).Kind); !f.ReadsShape {
				return true
			}
			continue
		}
		if role[v] != graph.FuseView || g.Inputs(v)[0] != t {
			continue
		}
		first, end := g.Outputs(v)
		for o := first; o < end; o++ {
			if leaves(g, role, o, inside) {
				return true
			}
		}
	}
	return false
}
