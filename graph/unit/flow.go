package unit

import (
	"slices"

	"placer/graph"
)

// lists is a list of indices per index.
type lists struct {
	at []int32 // [n+1]
	to []int32
}

func (l *lists) of(i int32) []int32 { return l.to[l.at[i]:l.at[i+1]] }

// flow is the part of a graph that a subset of its ops makes, in an order in
// which operands come first. Indices are positions in ops.
type flow struct {
	ops        []graph.OpID // [n]
	pred, succ lists        // distinct, ascending
}

// newFlow returns the flow of ops, ascending; where is scratch, [N], all -1, and
// is left so. Only data edges count: control dependencies carry no bytes.
func newFlow(g *graph.Graph, ops []graph.OpID, where []int32) *flow {
	f := &flow{ops: ops}
	for k, i := range ops {
		where[i] = int32(k)
	}
	f.pred.at = make([]int32, 1, len(ops)+1)
	for _, i := range ops {
		from := len(f.pred.to)
		for _, t := range g.Inputs(i) {
			if p := where[g.Tensor(t).Producer]; p >= 0 {
				f.pred.to = append(f.pred.to, p)
			}
		}
		own := f.pred.to[from:]
		slices.Sort(own)
		f.pred.to = f.pred.to[:from+len(slices.Compact(own))]
		f.pred.at = append(f.pred.at, int32(len(f.pred.to)))
	}
	f.succ = invert(&f.pred, len(ops))
	for _, i := range ops {
		where[i] = -1
	}
	return f
}

// invert returns the lists in which b has a whenever a has b in l.
func invert(l *lists, n int) lists {
	r := lists{at: make([]int32, n+1), to: make([]int32, len(l.to))}
	for _, b := range l.to {
		r.at[b+1]++
	}
	for i := range n {
		r.at[i+1] += r.at[i]
	}
	fill := slices.Clone(r.at)
	for a := range int32(len(l.at) - 1) {
		for _, b := range l.of(a) {
			r.to[fill[b]] = a
			fill[b]++
		}
	}
	return r
}

// reversed returns f with every edge and the order turned round.
func (f *flow) reversed() *flow {
	n := int32(len(f.ops))
	r := &flow{ops: slices.Clone(f.ops)}
	slices.Reverse(r.ops)
	turn := func(l *lists) lists {
		out := lists{at: make([]int32, 1, n+1)}
		for i := n - 1; i >= 0; i-- {
			from := len(out.to)
			for _, j := range l.of(i) {
				out.to = append(out.to, n-1-j)
			}
			slices.Reverse(out.to[from:])
			out.at = append(out.at, int32(len(out.to)))
		}
		return out
	}
	r.pred, r.succ = turn(&f.succ), turn(&f.pred)
	return r
}
