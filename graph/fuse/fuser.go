package fuse

import (
	"fmt"

	"placer/graph"
)

// Never is the fusion priority of an op that is not fused with its readers; its
// producers may still be fused with it.
const Never = 0

// Fuser makes kernels from devices and fusion priorities. It serves one
// goroutine.
type Fuser struct {
	*Rules
	head  []int32 // [N] last op of each op's kernel in the order of fusion
	next  []int32 // [N] the kernels' ops as rings
	size  []int32 // [N] at heads: ops of the kernel
	holds []uint8 // [N] at heads: anchors and reductions
	visit []int32 // scratch
}

const (
	holdsAnchor = 1 << iota
	holdsReduce
)

// NewFuser returns a fuser by the rules r.
func NewFuser(r *Rules) *Fuser {
	n := len(r.role)
	return &Fuser{Rules: r, head: make([]int32, n), next: make([]int32, n), size: make([]int32, n), holds: make([]uint8, n), visit: make([]int32, 0, len(r.fusible))}
}

// Fuse returns the kernels that follow from device, [N], and priority, [N]: for
// each op the last op of its kernel in the order of fusion, [N], valid until the
// next call.
//
// Ops are visited by falling priority, of equal ones the last in the order of
// fusion first; those of priority Never are not. The kernel of the visited op
// becomes one with the kernel of each op that reads it, by ascending id, where
// the result is legal. Fuse allocates nothing.
func (f *Fuser) Fuse(device, priority []uint8) []int32 {
	n := len(f.head)
	if len(device) != n || len(priority) != n {
		panic(fmt.Sprintf("fuse: %d devices and %d priorities for %d ops", len(device), len(priority), n))
	}
	for i := range f.head {
		f.head[i], f.next[i] = int32(i), int32(i)
	}
	for i, r := range f.role {
		f.size[i], f.holds[i] = 1, 0
		switch r {
		case graph.FuseAnchor:
			f.holds[i] = holdsAnchor
		case graph.FuseReduce:
			f.holds[i] = holdsReduce
		}
	}
	for _, u := range f.visits(priority) {
		for _, to := range f.out[f.at[u]:f.at[u+1]] {
			if v := to >> 1; to&1 != 0 && device[u] == device[v] {
				f.join(f.head[u], f.head[v])
			}
		}
	}
	return f.head
}

// visits returns the ops to visit, in order.
func (f *Fuser) visits(priority []uint8) []int32 {
	var count [257]int32
	for _, i := range f.fusible {
		count[priority[i]]++
	}
	at := int32(0)
	for p := 255; p > Never; p-- {
		at, count[p] = at+count[p], at
	}
	f.visit = f.visit[:at]
	for _, i := range f.fusible {
		if p := priority[i]; p != Never {
			f.visit[count[p]] = i
			count[p]++
		}
	}
	return f.visit
}

// join makes one kernel of a, which is read by b, and b, if that is legal.
//
// The ops of a all come before the last op of b: the op of b that reads a comes
// after the last of a. For the same reason a reads nothing of b, and what reads b
// comes after both. What remains is to look at the readers of a.
func (f *Fuser) join(a, b int32) {
	both := f.holds[a] | f.holds[b]
	if a == b || f.size[a]+f.size[b] > MaxOps || f.holds[a]&f.holds[b]&holdsAnchor != 0 || both == holdsAnchor|holdsReduce {
		return
	}
	last := f.pos[b]
	for i := a; ; {
		for _, to := range f.out[f.at[i]:f.at[i+1]] {
			v := to >> 1
			switch f.head[v] {
			case a:
			case b:
				if to&1 == 0 {
					return
				}
			default:
				if f.pos[v] < last {
					return
				}
			}
		}
		if i = f.next[i]; i == a {
			break
		}
	}
	for i := a; ; {
		f.head[i] = b
		if i = f.next[i]; i == a {
			break
		}
	}
	f.next[a], f.next[b] = f.next[b], f.next[a]
	f.size[b] += f.size[a]
	f.holds[b] = both
}

// Next returns, for each op, the next op of its kernel, [N], read-only, valid
// until the next call of Fuse: the ops of a kernel form a ring.
func (f *Fuser) Next() []int32 { return f.next }
