package listsched

import (
	"container/heap"
	"context"

	"placer/graph"
	"placer/plan"
)

// ETF is "etf", the earliest-task-first scheduler, on ops.
func ETF() plan.Placer { return method{"etf", onOps((*gapFilling).etf)} }

// UnitETF is "etf-units", ETF on chains, segments and cells in turn.
func UnitETF() plan.Placer { return method{"etf-units", onUnits((*gapFilling).etf)} }

// etf places all ops but sources that nothing reads; false: ctx has ended.
func (s *gapFilling) etf(ctx context.Context) bool {
	e := newETF(s)
	for k := 0; ; k++ {
		if k%256 == 0 && ctx.Err() != nil {
			return false
		}
		i, v, ok := e.next()
		if !ok {
			return true
		}
		e.place(i, v, false)
		e.release(i)
	}
}

// etf keeps the ready ops of a schedule. An op sits once on each device that may
// run it: in early, by the time it could start there, until the device is busy
// that long; then in late, by its level.
type etf struct {
	*gapFilling
	level   []float64 // longest path to the end, [N]
	waiting []int     // [N] predecessors not placed
	after   [][]graph.OpID
	offers  []int // [N] devices on which the op still waits
	early   []queue
	late    []queue
}

func newETF(s *gapFilling) *etf {
	n := s.g.NumOps()
	e := &etf{gapFilling: s, level: upwardRank(s), waiting: make([]int, n), after: make([][]graph.OpID, n), offers: make([]int, n),
		early: make([]queue, s.d), late: make([]queue, s.d)}
	for i := range graph.OpID(n) {
		if s.source[i] {
			continue
		}
		for q := range s.g.Predecessors(i) {
			if !s.source[q] {
				e.after[q] = append(e.after[q], i)
				e.waiting[i]++
			}
		}
	}
	for i := range n {
		if !s.source[i] && e.waiting[i] == 0 {
			e.offer(graph.OpID(i))
		}
	}
	return e
}

// release offers the ops for which i was the last to wait for, and offers again,
// on its device, what waits of the groups that i has bound: there may have been
// no room for it before.
func (e *etf) release(i graph.OpID) {
	for _, u := range e.bound {
		for _, c := range e.ops.Ops[u] {
			if e.waiting[c] == 0 && e.device[c] == none && !e.source[c] {
				heap.Push(&e.early[e.fixed[u]], entry{e.ready(c, e.fixed[u]), c})
			}
		}
	}
	e.bound = e.bound[:0]
	for _, c := range e.after[i] {
		if e.waiting[c]--; e.waiting[c] == 0 {
			e.offer(c)
		}
	}
}

func (e *etf) offer(i graph.OpID) {
	for v := range e.d {
		if f := e.fixed[e.ops.Of[i]]; f == none || f == v {
			e.offers[i]++
			heap.Push(&e.early[v], entry{e.ready(i, v), i})
		}
	}
}

// next returns the op and device with the earliest start; ties go to the higher
// level, then the lower device.
func (e *etf) next() (graph.OpID, int, bool) {
	best, at, level := none, 0.0, 0.0
	var op graph.OpID
	for v := range e.d {
		i, start, ok := e.head(v)
		if ok && (best == none || start < at || start == at && e.level[i] > level) {
			best, at, level, op = v, start, e.level[i], i
		}
	}
	return op, best, best != none
}

// head returns the op that could start first on v, and when.
func (e *etf) head(v int) (i graph.OpID, start float64, ok bool) {
	free := e.devices[v].Free()
	for len(e.early[v]) > 0 && e.early[v][0].key <= free {
		x := heap.Pop(&e.early[v]).(entry)
		heap.Push(&e.late[v], entry{-e.level[x.op], x.op})
	}
	for len(e.late[v]) > 0 {
		x := e.late[v][0]
		if !e.stale(x.op, v) {
			at := e.ready(x.op, v)
			if at <= free {
				return x.op, free, true
			}
			heap.Pop(&e.late[v]) // the links have filled up since
			heap.Push(&e.early[v], entry{at, x.op})
			continue
		}
		heap.Pop(&e.late[v])
	}
	for len(e.early[v]) > 0 {
		x := e.early[v][0]
		if !e.stale(x.op, v) {
			at := e.ready(x.op, v)
			if at <= x.key {
				return x.op, max(at, free), true
			}
			heap.Pop(&e.early[v])
			heap.Push(&e.early[v], entry{at, x.op})
			continue
		}
		heap.Pop(&e.early[v])
	}
	return 0, 0, false
}

// stale reports whether op i is no longer to be had on v: placed, bound to
// another device by its group, or without room there while it waits elsewhere
// too.
func (e *etf) stale(i graph.OpID, v int) bool {
	if e.device[i] != none {
		return true
	}
	if f := e.fixed[e.ops.Of[i]]; f != none {
		return f != v
	}
	if e.offers[i] > 1 && e.room(i, v) < 0 {
		e.offers[i]--
		return true
	}
	return false
}

// entry orders ops by key, then by id.
type entry struct {
	key float64
	op  graph.OpID
}

type queue []entry

func (q queue) Len() int { return len(q) }
func (q queue) Less(a, b int) bool {
	return q[a].key < q[b].key || q[a].key == q[b].key && q[a].op < q[b].op
}
func (q queue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *queue) Push(x any)   { *q = append(*q, x.(entry)) }
func (q *queue) Pop() any {
	n := len(*q) - 1
	x := (*q)[n]
	*q = (*q)[:n]
	return x
}
