package fuse

import (
	"slices"

	"placer/graph"
)

// MaxOps is the largest number of ops in a kernel. Compilers stop there too: a
// kernel's registers and arguments are limited.
const MaxOps = 64

// Rules is what the legality of kernels of one graph depends on, whatever the
// devices. It does not change once made, so goroutines may share it.
type Rules struct {
	g    *graph.Graph
	role []graph.FuseRole // [N]
	pos  []int32          // [N] place in the order of fusion
	// The ops that read op i, or wait for it, are out[at[i]:at[i+1]], ascending, each
	// once: twice its id, plus 1 where op i may be fused with it.
	at, out []int32
	// fusible lists the ops that some reader may be fused with, by falling place.
	fusible []int32
}

// NewRules returns the rules of g.
func NewRules(g *graph.Graph) *Rules {
	r := &Rules{g: g, role: Roles(g)}
	r.readReaders()
	r.order()
	return r
}

// Graph returns the graph.
func (r *Rules) Graph() *graph.Graph { return r.g }

// Order returns the place of each op in the order of fusion, [N], read-only: a
// topological order, in which what can share a kernel is close together.
func (r *Rules) Order() []int32 { return r.pos }

// Role returns the role of op i.
func (r *Rules) Role(i graph.OpID) graph.FuseRole { return r.role[i] }

// Fusible returns the ops that some reader may share a kernel with, read-only, by
// falling place in the order of fusion. A fusion priority of any other op changes
// nothing.
func (r *Rules) Fusible() []int32 { return r.fusible }

// FusibleConsumers returns the readers that op u may be fused with, ascending.
func (r *Rules) FusibleConsumers(u int32) (vs []int32) {
	for _, to := range r.out[r.at[u]:r.at[u+1]] {
		if to&1 != 0 {
			vs = append(vs, to>>1)
		}
	}
	return vs
}

// CanFuse reports whether op u may be fused with its reader v: what passes between them
// is then a fused intermediate.
func (r *Rules) CanFuse(u, v graph.OpID) bool {
	return slices.Contains(r.out[r.at[u]:r.at[u+1]], int32(v)<<1|1)
}

// Roles returns the role of each op of g, [N]: that of its kind, except that an
// op that holds memory for the whole step, or hands out views of such memory, is
// always alone (an update that writes a variable in place is what its kind is), as is one that repeats, for what it passes on is complete when its last
// kernel ends; and that a reduction whose result is as large as its input is a loop.
func Roles(g *graph.Graph) []graph.FuseRole {
	role := make([]graph.FuseRole, g.NumOps())
	for i := range role {
		id := graph.OpID(i)
		o := g.Op(id)
		f, _ := graph.FactsOf(o.Kind)
		role[i] = f.Fuse
		first, end := g.Outputs(id)
		for t := first; t < end; t++ {
			if g.Tensor(t).Resident && !(o.Phase == graph.Update && f.Fuse == graph.FuseLoop) {
				role[i] = graph.FuseNever
			}
		}
		if n, k := o.Iterations(); o.Resident > 0 || n*k > 1 && f.Class.Launches() || first == end && role[i] == graph.FuseView {
			role[i] = graph.FuseNever
		}
		if in := g.Inputs(id); role[i] == graph.FuseReduce && end == first+1 && len(in) > 0 && g.Tensor(first).Bytes == g.Tensor(in[0]).Bytes {
			role[i] = graph.FuseLoop
		}
		if role[i] == graph.FuseView && len(g.Inputs(id)) == 0 {
			role[i] = graph.FuseNever
		}
	}
	return role
}

// Views returns, for each tensor of g, [T], the tensor whose memory it shares on the
// device of its op, or -1: the only output of a view is where its first input is, if
// that is as large.
func Views(g *graph.Graph) []graph.TensorID {
	of := make([]graph.TensorID, g.NumTensors())
	for t := range of {
		of[t] = -1
	}
	for i, role := range Roles(g) {
		id := graph.OpID(i)
		first, end := g.Outputs(id)
		if role != graph.FuseView || end != first+1 {
			continue
		}
		if in := g.Inputs(id)[0]; g.Tensor(first).Bytes <= g.Tensor(in).Bytes {
			of[first] = in
		}
	}
	return of
}

// mayFuse reports whether data of a role u goes to a role v within a kernel.
func mayFuse(u, v graph.FuseRole) bool {
	switch u {
	case graph.FuseLoop, graph.FuseView:
		return v == graph.FuseLoop || v == graph.FuseView || v == graph.FuseReduce
	case graph.FuseAnchor:
		return v == graph.FuseLoop || v == graph.FuseView
	}
	return false
}

// readReaders fills at and out. Of a view the first input alone is data; the
// others are shapes. An op that also waits by control dependency, or reads twice
// in different parts, is fused with none of what it reads.
func (r *Rules) readReaders() {
	n := r.g.NumOps()
	type edge struct{ from, to int32 } // to: as in out
	var edges []edge
	for v := range n {
		id := graph.OpID(v)
		for k, t := range r.g.Inputs(id) {
			u := r.g.Tensor(t).Producer
			fusible := mayFuse(r.role[u], r.role[v]) && (r.role[v] != graph.FuseView || k == 0)
			to := int32(v) << 1
			if fusible {
				to |= 1
			}
			edges = append(edges, edge{int32(u), to})
		}
		for _, u := range r.g.Control(id) {
			edges = append(edges, edge{int32(u), int32(v) << 1})
		}
	}
	r.at = make([]int32, n+1)
	for _, e := range edges {
		r.at[e.from+1]++
	}
	for i := range n {
		r.at[i+1] += r.at[i]
	}
	next := slices.Clone(r.at)
	out := make([]int32, len(edges))
	for _, e := range edges { // by reader, so ascending
		out[next[e.from]] = e.to
		next[e.from]++
	}
	kept := int32(0)
	for i := range n {
		list := out[r.at[i]:r.at[i+1]]
		r.at[i] = kept
		for _, to := range list {
			if kept > r.at[i] && out[kept-1]>>1 == to>>1 {
				out[kept-1] &= to // one part that is no fused intermediate keeps the reader out
				continue
			}
			out[kept] = to
			kept++
		}
	}
	r.at[n] = kept
	r.out = out[:kept]
}

// order computes the places. The depth of an op is the number of dependencies on
// the way to it that no kernel can contain. Ops of one depth are neighbours, by
// id. What is read by kernels alone or never fused, and products, which read
// nothing from their own kernel, stand as late as their readers let them, so that
// they do not come between the ops of a kernel that they read.
func (r *Rules) order() {
	n := len(r.role)
	depth := make([]int32, n)
	for i := range n {
		for _, to := range r.out[r.at[i]:r.at[i+1]] {
			v := to >> 1
			depth[v] = max(depth[v], depth[i]+1-to&1)
		}
	}
	most := int32(0)
	for _, d := range depth {
		most = max(most, d)
	}
	for i := n - 1; i >= 0; i-- {
		if r.role[i] != graph.FuseNever && r.role[i] != graph.FuseAnchor {
			continue
		}
		late := most
		for _, to := range r.out[r.at[i]:r.at[i+1]] {
			late = min(late, depth[to>>1]-(1-to&1))
		}
		depth[i] = late
	}
	count := make([]int32, most+2)
	for _, d := range depth {
		count[d+1]++
	}
	for d := range most + 1 {
		count[d+1] += count[d]
	}
	r.pos = make([]int32, n)
	at := make([]int32, n)
	for i, d := range depth {
		r.pos[i] = count[d]
		at[count[d]] = int32(i)
		count[d]++
	}
	for p := n - 1; p >= 0; p-- {
		i := at[p]
		for _, to := range r.out[r.at[i]:r.at[i+1]] {
			if to&1 != 0 {
				r.fusible = append(r.fusible, i)
				break
			}
		}
	}
}
