package schedule

import (
	"encoding/json"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/plan"
)

// file is what Read takes of the file.
type file struct {
	Graph  struct{ Name, Hash string }
	Method string
	Ops    []struct {
		Name, Device string
		Kernel       int
	}
}

// Is reports whether data is a schedule file, by its format.
func Is(data []byte) bool {
	var head struct {
		Format string `json:"format"`
	}
	return json.Unmarshal(data, &head) == nil && head.Format == Format
}

// Read returns the plan of a schedule of g on m: the devices, and the ops' order as priorities,
// under which the simulator runs them as they stand. kernel, [N], is the number of each op's kernel,
// 0 alone. It reports what the plan lacks, or has more than once.
func Read(data []byte, g *graph.Graph, m *hw.Machine) (p *plan.Plan, kernel []int, err error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, nil, err
	}
	if f.Graph.Hash != g.Hash() {
		return nil, nil, fmt.Errorf("the schedule is for graph %s (%.12s), not for %s (%.12s)", f.Graph.Name, f.Graph.Hash, g.Name(), g.Hash())
	}
	n := g.NumOps()
	op, on := make(map[string]int, n), map[string]uint8{}
	for i := range n {
		op[g.Op(graph.OpID(i)).Name] = i
	}
	for d := range m.Devices {
		on[m.Devices[d].Name] = uint8(d)
	}
	p = &plan.Plan{Graph: f.Graph.Hash, Machine: m.Name, Method: f.Method, Decision: plan.Decision{Device: make([]uint8, n), Priority: make([]int32, n)}}
	kernel, seen := make([]int, n), make([]bool, n)
	for k, x := range f.Ops {
		i, ok := op[x.Name]
		if !ok || seen[i] {
			return nil, nil, fmt.Errorf("the schedule has op %s more than once, or the graph has not", x.Name)
		}
		d, ok := on[x.Device]
		if !ok {
			return nil, nil, fmt.Errorf("op %s is on device %q, which machine %s has not", x.Name, x.Device, m.Name)
		}
		seen[i] = true
		p.Device[i], p.Priority[i], kernel[i] = d, int32(k), x.Kernel
	}
	if len(f.Ops) < n {
		return nil, nil, fmt.Errorf("the schedule has %d of %d ops", len(f.Ops), n)
	}
	return p, kernel, p.Check(g, m)
}
