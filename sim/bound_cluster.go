package sim

import (
	ordered "container/heap"
	"context"

	"placer/graph"
)

// clusterAncestors is how many ancestors of an op cluster looks at, at most, and
// clusterLooks bounds how many it looks at for all ops together: some seconds.
const (
	clusterAncestors = 64
	clusterLooks     = 16_000_000
)

// edge is a dependency as seen from one of its ends: the op at the other one, and the
// seconds that the tensor takes between the two devices that are nearest.
type edge struct {
	op       int32
	transfer float64
}

// edges returns the dependencies of every op on what it reads, and the other way.
func (b *bounder) edges() (before, after [][]edge) {
	before, after = make([][]edge, b.n), make([][]edge, b.n)
	routes := b.distinctRoutes()
	for i := range b.n {
		b.predecessors(i, func(p graph.OpID, bytes int64) {
			transfer := inf // on one device there is no other
			for k := range routes {
				transfer = min(transfer, routes[k].seconds(bytes))
			}
			before[i] = append(before[i], edge{int32(p), transfer})
			after[p] = append(after[p], edge{int32(i), transfer})
		})
	}
	return before, after
}

// cluster raises heads and tails by transfers that cannot be avoided, after Papadimitriou
// and Yannakakis (Towards an architecture-independent analysis of parallel algorithms,
// SIAM J. Comput. 19, 1990), here with a time for each transfer.
//
// Let h(u) be a proven earliest start of op u, t(u) its least time, and c(u,x) the least
// time in which what u sends to x crosses devices. For an ancestor u of v let
//
//	r(u) = max over x, read u on the way to v, of min(h(u)+t(u)+c(u,x)+L(x), r(x)),
//
// where L(x) is the time of a path from x on to v, x included, v not, and r(v) is
// infinite. If u is not on v's device, v starts no earlier than r(u): take an x. If x is
// on v's device, then what u sends to x crosses, and the path follows; if not, v starts no
// earlier than r(x) by induction.
//
// Take ancestors by falling r, u1, u2 and so on. For any k, either one of u1 to uk is not on
// v's device, and then v starts no earlier than r(uk); or all are, and run there one at a
// time before v. Then v starts no earlier than
//
//	C(k) = max over s of s + sum of t(u) over u of u1 to uk with h(u) >= s.
//
// So v starts no earlier than min(r(uk), C(k)), for every k. The best k raises h(v), and
// with it the heads of what comes after. Only some ancestors are looked at, by one path
// each to begin with; the proof holds for any of them and any path. Tails are the heads of
// the graph with time turned round, of which all of this is true.
//
// What is written over is b.head and b.tail. It is false where ctx ends before it is done.
func (b *bounder) cluster(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	if len(b.distinctRoutes()) == 0 {
		return true
	}
	before, after := b.edges()
	return b.raise(ctx, before, b.head, func(k int) int { return k }) &&
		b.raise(ctx, after, b.tail, func(k int) int { return b.n - 1 - k })
}

// raise raises heads, [N]; edges are those to what comes before, and nth gives the ops in
// an order in which that is seen first. It is false where ctx ends before it is done.
func (b *bounder) raise(ctx context.Context, edges [][]edge, head []float64, nth func(int) int) bool {
	c := &clusterer{b: b, edges: edges, head: head, most: min(clusterAncestors, max(1, clusterLooks/b.n)), at: make([]int32, b.n), of: make([]int32, b.n)}
	for k := range c.of {
		c.of[k] = -1
	}
	for k := range b.n {
		if ctx.Err() != nil {
			return false
		}
		v := nth(k)
		for _, e := range edges[v] {
			head[v] = max(head[v], head[e.op]+b.fastest[e.op])
		}
		if len(edges[v]) > 0 {
			head[v] = max(head[v], c.start(int32(v)))
		}
	}
	return true
}

// clusterer finds the clusters of one op after another.
type clusterer struct {
	b     *bounder
	edges [][]edge
	head  []float64
	most  int // ancestors of an op
	// Of the op v under way: its ancestors so far by falling r, a heap of those that are
	// to follow, where in it an op is, and for what v that holds.
	heap ancestors
	at   []int32
	of   []int32
	jobs []job // of the cluster, by rising heads
}

// ancestor is an op before v.
type ancestor struct {
	op    int32
	r     float64 // see cluster
	path  float64 // L: of a path from it to v, itself included
	place int32   // in the heap; -1: taken out
}

// job is an op of the cluster.
type job struct{ head, seconds float64 }

// start returns the earliest start of v that its ancestors prove.
func (c *clusterer) start(v int32) float64 {
	c.heap.known, c.heap.order, c.jobs = c.heap.known[:0], c.heap.order[:0], c.jobs[:0]
	c.reach(v, v, inf, 0)
	best := 0.0
	for range c.most {
		if len(c.heap.order) == 0 {
			return best
		}
		u := c.heap.known[ordered.Pop(&c.heap).(int32)]
		if u.r <= best {
			return best
		}
		together := c.add(u.op)
		best = max(best, min(u.r, together))
		if together >= u.r {
			return best
		}
		c.reach(v, u.op, u.r, u.path)
	}
	return best
}

// reach offers what comes before x, whose r and path to v are given.
func (c *clusterer) reach(v, x int32, r, path float64) {
	for _, e := range c.edges[x] {
		u, seconds := e.op, c.b.fastest[e.op]
		y := ancestor{op: u, r: min(r, c.head[u]+seconds+e.transfer+path), path: path + seconds}
		if c.of[u] != v {
			c.of[u], c.at[u] = v, int32(len(c.heap.known))
			c.heap.known = append(c.heap.known, y)
			ordered.Push(&c.heap, c.at[u])
			continue
		}
		if old := &c.heap.known[c.at[u]]; old.place >= 0 {
			old.path = max(old.path, y.path)
			if y.r > old.r {
				old.r = y.r
				ordered.Fix(&c.heap, int(old.place))
			}
		}
	}
}

// add puts op u into the cluster and returns when all of it can have ended.
func (c *clusterer) add(u int32) (end float64) {
	k := len(c.jobs)
	c.jobs = append(c.jobs, job{})
	for ; k > 0 && c.jobs[k-1].head > c.head[u]; k-- {
		c.jobs[k] = c.jobs[k-1]
	}
	c.jobs[k] = job{c.head[u], c.b.fastest[u]}
	for _, j := range c.jobs {
		end = max(end, j.head) + j.seconds
	}
	return end
}

// ancestors is a heap of those that are known and still to be taken out, the largest r
// first, of equals the lowest op.
type ancestors struct {
	known []ancestor
	order []int32 // indices of known
}

func (a *ancestors) Len() int { return len(a.order) }
func (a *ancestors) Less(i, j int) bool {
	x, y := &a.known[a.order[i]], &a.known[a.order[j]]
	if x.r != y.r {
		return x.r > y.r
	}
	return x.op < y.op
}
func (a *ancestors) Swap(i, j int) {
	a.order[i], a.order[j] = a.order[j], a.order[i]
	a.known[a.order[i]].place, a.known[a.order[j]].place = int32(i), int32(j)
}
func (a *ancestors) Push(x any) {
	a.order = append(a.order, x.(int32))
	a.known[x.(int32)].place = int32(len(a.order) - 1)
}
func (a *ancestors) Pop() any {
	k := len(a.order) - 1
	x := a.order[k]
	a.order = a.order[:k]
	a.known[x].place = -1
	return x
}
