package fuse

import (
	"fmt"
	"slices"

	"placer/graph"
	"placer/internal/unionfind"
)

// Check reports the first fault of kernels of g on device, [N]: head, [N], names
// one op for all ops of a kernel. It tries for cycles by running the kernels, and
// shares nothing with Fuser but the table of kinds, so that it accepts every
// legal kernel and a few more: those that are free of cycles though the order of
// fusion does not show it.
func Check(g *graph.Graph, device []uint8, head []int32) error {
	n := g.NumOps()
	if len(device) != n || len(head) != n {
		return fmt.Errorf("kernels of %d ops on %d devices, graph %s has %d ops", len(head), len(device), g.Name(), n)
	}
	name := func(i int32) string { return fmt.Sprintf("op %d (%s)", i, g.Op(graph.OpID(i)).Name) }
	role := Roles(g)
	members := map[int32][]int32{}
	for i, h := range head {
		if h < 0 || int(h) >= n || head[h] != h {
			return fmt.Errorf("%s: op %d does not head its kernel", name(int32(i)), h)
		}
		if device[i] != device[h] {
			return fmt.Errorf("%s is on device %d, its kernel's %s on %d", name(int32(i)), device[i], name(h), device[h])
		}
		members[h] = append(members[h], int32(i))
	}
	linked := unionfind.New(n) // by fused intermediates
	for i := range int32(n) {
		for k, t := range g.Inputs(graph.OpID(i)) {
			p := int32(g.Tensor(t).Producer)
			if head[p] != head[i] {
				continue
			}
			if !mayFuse(role[p], role[i]) || role[i] == graph.FuseView && k > 0 {
				return fmt.Errorf("%s (%v) cannot hand data to %s (%v) within a kernel", name(p), role[p], name(i), role[i])
			}
			linked.Join(p, i)
		}
		for _, c := range g.Control(graph.OpID(i)) {
			if head[c] == head[i] {
				return fmt.Errorf("%s waits for %s of the same kernel", name(i), name(int32(c)))
			}
		}
	}
	for i := range int32(n) {
		ops := members[i]
		if len(ops) < 2 {
			continue
		}
		anchors, reduces := 0, 0
		for _, m := range ops {
			if linked.Root(m) != linked.Root(ops[0]) {
				return fmt.Errorf("%s shares nothing with the rest of its kernel", name(m))
			}
			switch role[m] {
			case graph.FuseAnchor:
				anchors++
			case graph.FuseReduce:
				reduces++
			}
		}
		if len(ops) > MaxOps || anchors > 1 || anchors > 0 && reduces > 0 {
			return fmt.Errorf("kernel of %s has %d ops, %d anchors and %d reductions", name(i), len(ops), anchors, reduces)
		}
	}
	return checkCycles(g, head, members, name)
}

// checkCycles runs the kernels, each when all it reads is there.
func checkCycles(g *graph.Graph, head []int32, members map[int32][]int32, name func(int32) string) error {
	wait := map[int32]int{} // kernel -> dependencies on other kernels
	readers := map[int32][]int32{}
	for i, b := range head {
		for p := range g.Predecessors(graph.OpID(i)) {
			if a := head[p]; a != b {
				wait[b]++
				readers[a] = append(readers[a], b)
			}
		}
	}
	var ready []int32
	for i := range int32(len(head)) {
		if head[i] == i && wait[i] == 0 {
			ready = append(ready, i)
		}
	}
	ran := 0
	for ; len(ready) > 0; ran++ {
		k := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, b := range readers[k] {
			if wait[b]--; wait[b] == 0 {
				ready = append(ready, b)
			}
		}
	}
	if ran == len(members) {
		return nil
	}
	for i := range int32(len(head)) {
		if head[i] == i && wait[i] > 0 && len(members[i]) > 1 {
			return fmt.Errorf("kernel of %s waits for what waits for it", name(slices.Min(members[i])))
		}
	}
	return nil
}
