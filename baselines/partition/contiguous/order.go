package contiguous

import (
	"context"

	"placer/graph"
	"placer/internal/digraph"
	"placer/sim/throughput"
)

// blocks is an instance whose blocks are ordered without cycles.
type blocks struct {
	*throughput.Instance
	before [][]int32 // [B] blocks that must be in the downset first
	after  [][]int32 // [B]
	// merged says that blocks of no time were joined to their only neighbour although
	// memory is short: a split that keeps them apart might fit better.
	merged bool
}

// arrange joins the blocks of s that lie on cycles, then those of no time to
// their only neighbour. Where memory is short it joins blocks of no bytes alone,
// unless force asks for all.
func arrange(ctx context.Context, s throughput.Source, force bool) (*blocks, error) {
	x, err := throughput.New(ctx, s)
	if err != nil {
		return nil, err
	}
	edges := precedence(x)
	next := make([][]int32, x.NumBlocks())
	for _, e := range edges {
		next[e[0]] = append(next[e[0]], e[1])
	}
	part, _ := digraph.Components(next)
	tight, merged := short(x), false
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.Part = spread(x, part)
		y, err := throughput.New(ctx, s)
		if err != nil {
			return nil, err
		}
		edges = mapEdges(edges, x, y)
		x = y
		var any bool
		if part, any = idle(x, edges, tight && !force); !any {
			break
		}
		merged = tight && force
	}
	b := &blocks{Instance: x, before: make([][]int32, x.NumBlocks()), after: make([][]int32, x.NumBlocks()), merged: merged}
	for _, e := range edges {
		b.after[e[0]] = append(b.after[e[0]], e[1])
		b.before[e[1]] = append(b.before[e[1]], e[0])
	}
	return b, nil
}

// precedence returns the edges between the blocks of x, each once: those between
// forward ops, and the reverse of those between other ops where one of the
// blocks has no forward op.
func precedence(x *throughput.Instance) [][2]int32 {
	g := x.Graph
	orphan := make([]bool, x.NumBlocks())
	for b, m := range x.Members {
		orphan[b] = true
		for _, i := range m {
			if g.Op(i).Phase == graph.Forward {
				orphan[b] = false
				break
			}
		}
	}
	seen := map[[2]int32]bool{}
	var edges [][2]int32
	add := func(u, v int32) {
		e := [2]int32{u, v}
		if u != v && !seen[e] {
			seen[e] = true
			edges = append(edges, e)
		}
	}
	visit := func(u, v graph.OpID) {
		a, b := x.Block[u], x.Block[v]
		fu, fv := g.Op(u).Phase == graph.Forward, g.Op(v).Phase == graph.Forward
		switch {
		case fu && fv:
			add(a, b)
		case !fu && !fv && (orphan[a] || orphan[b]):
			add(b, a)
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		for p := range g.Predecessors(i) {
			visit(p, i)
		}
	}
	return edges
}

// spread turns the parts of x's blocks into parts of its ops.
func spread(x *throughput.Instance, part []int32) []int32 {
	out := make([]int32, len(x.Block))
	for i, b := range x.Block {
		out[i] = part[b]
	}
	return out
}

// mapEdges returns edges between the blocks of x as edges between those of y,
// whose blocks are made of x's.
func mapEdges(edges [][2]int32, x, y *throughput.Instance) [][2]int32 {
	seen := map[[2]int32]bool{}
	var out [][2]int32
	for _, e := range edges {
		f := [2]int32{y.Block[x.Members[e[0]][0]], y.Block[x.Members[e[1]][0]]}
		if f[0] != f[1] && !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	return out
}

// idle joins every block of no time whose nets and edges lead to one other block
// only to that block: no split is better for keeping them apart, memory aside.
// With tight memory it joins blocks of no bytes alone.
func idle(x *throughput.Instance, edges [][2]int32, tight bool) (part []int32, any bool) {
	n := x.NumBlocks()
	const several = -2
	only := make([]int32, n)
	for b := range only {
		only[b] = -1
	}
	meet := func(a, b int32) {
		if only[a] == -1 {
			only[a] = b
		} else if only[a] != b {
			only[a] = several
		}
	}
	for _, e := range edges {
		meet(e[0], e[1])
		meet(e[1], e[0])
	}
	for e := range x.Nets {
		blocks := x.Nets[e].Blocks
		for _, b := range blocks {
			if len(blocks) > 2 {
				only[b] = several
			} else if b == blocks[0] {
				meet(b, blocks[1])
			} else {
				meet(b, blocks[0])
			}
		}
	}
	part = make([]int32, n)
	for b := range part {
		part[b] = int32(b)
	}
	taken := make([]bool, n) // has been joined to, or joins
	for b := range int32(n) {
		m := only[b]
		if m < 0 || taken[b] || taken[m] && part[m] != m || x.Longest(b) > idleSeconds || tight && x.Size[b] > 0 {
			continue
		}
		part[b] = m
		taken[b], taken[m] = true, true
		any = true
	}
	return part, any
}

// idleSeconds bounds what counts as no time: the simulator gives an op of none
// a picosecond.
const idleSeconds = 1e-11

// short reports whether all blocks together do not fit every device.
func short(x *throughput.Instance) bool {
	var all int64
	for _, s := range x.Size {
		all += s
	}
	for _, c := range x.Classes {
		if all > c.Memory {
			return true
		}
	}
	return false
}
