package plan

import (
	"fmt"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/words"
)

// Plan is a decision for every op of one graph on one machine.
type Plan struct {
	Graph   string // hash of the graph
	Machine string // name of the machine
	Method  string // who made it
	Decision
}

// Check reports the first op whose decision is invalid on g and m: a device out
// of range, a co-location group that is split, priorities that are no
// permutation.
func (p *Plan) Check(g *graph.Graph, m *hw.Machine) error {
	n, d := g.NumOps(), m.NumDevices()
	if p.Graph != "" && p.Graph != g.Hash() {
		return fmt.Errorf("plan is for graph %.12s, not for %s (%.12s)", p.Graph, g.Name(), g.Hash())
	}
	if len(p.Device) != n {
		return fmt.Errorf("plan places %s, graph %s has %d", words.Count(len(p.Device), "op", "ops"), g.Name(), n)
	}
	group := map[int32]int{}
	for i, v := range p.Device {
		o := g.Op(graph.OpID(i))
		if int(v) >= d {
			return fmt.Errorf("op %d (%s) is on device %d, machine %s has %d", i, o.Name, v, m.Name, d)
		}
		if o.Group > 0 {
			if first, ok := group[o.Group]; !ok {
				group[o.Group] = i
			} else if p.Device[first] != v {
				return fmt.Errorf("op %d (%s) is on device %d but must share a device with op %d (%s), which is on device %d",
					i, o.Name, v, first, g.Op(graph.OpID(first)).Name, p.Device[first])
			}
		}
	}
	if p.Fusion != nil && len(p.Fusion) != n {
		return fmt.Errorf("plan has %s for %s", words.Count(len(p.Fusion), "fusion priority", "fusion priorities"), words.Count(n, "op", "ops"))
	}
	if p.Priority == nil {
		return nil
	}
	if len(p.Priority) != n {
		return fmt.Errorf("plan has %s for %s", words.Count(len(p.Priority), "priority", "priorities"), words.Count(n, "op", "ops"))
	}
	seen := make([]bool, n)
	for i, r := range p.Priority {
		if r < 0 || int(r) >= n || seen[r] {
			return fmt.Errorf("op %d (%s): priority %d is out of range or taken", i, g.Op(graph.OpID(i)).Name, r)
		}
		seen[r] = true
	}
	return nil
}

// Kernels returns, for each op of g, one op of the kernel that it runs in, the
// same for all of them, [N]. The plan must be valid as Check says.
func (p *Plan) Kernels(g *graph.Graph) []int32 {
	if p.Fusion == nil {
		head := make([]int32, g.NumOps())
		for i := range head {
			head[i] = int32(i)
		}
		return head
	}
	return fuse.NewFuser(fuse.NewRules(g)).Fuse(p.Device, p.Fusion)
}
