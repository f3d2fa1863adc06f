package piper

import (
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/graph/formats/times"
	"placer/units"
)

type file struct {
	Devices   *int     `json:"maxDevices"`
	Memory    *float64 `json:"maxMemoryPerDevice"`
	Bandwidth *float64 `json:"bandwidth"`
	Nodes     []node   `json:"nodes"`
	Edges     []edge   `json:"edges"`
}

type node struct {
	ID    *int64              `json:"id"`
	Name  string              `json:"name"`
	Modes map[string][]config `json:"TMPCs"`
}

type config struct {
	ID         string  `json:"id"`
	Time       float64 `json:"timePerSample"` // milliseconds
	Parameters float64 `json:"parameterSize"`
	A          float64 `json:"memoryUsageA"` // bytes a microbatch in flight
	B          float64 `json:"memoryUsageB"` // bytes
}

type edge struct {
	From  *int64  `json:"sourceId"`
	To    *int64  `json:"destId"`
	Bytes float64 `json:"communicationCost"`
}

const (
	maxNodes        = 1 << 20
	maxMilliseconds = 1e12
	plainID         = "vanilla" // of the configuration that is read
)

// Sniff reports whether data looks like a graph of Piper.
func Sniff(data []byte) bool {
	return foreign.HasKey(data, 4, "maxDevices", "maxMemoryPerDevice", "mbsInBatch")
}

// Import reads a graph. name is the file's name, for errors and for the graph.
func Import(data []byte, name string) (*times.Instance, error) {
	return foreign.Import(data, name, func(f *file) (*times.Instance, error) { return f.instance(foreign.GraphName(name)) })
}

func (f *file) instance(name string) (*times.Instance, error) {
	bytes := func(x float64) bool { return x >= 0 && x <= float64(graph.MaxBytes) }
	switch {
	case f.Devices == nil || f.Memory == nil || f.Bandwidth == nil:
		return nil, fmt.Errorf("maxDevices, maxMemoryPerDevice or bandwidth is missing")
	case *f.Devices < 1 || *f.Devices > 1<<16 || !(*f.Memory >= 1) || !bytes(*f.Memory) || !(*f.Bandwidth > 0):
		return nil, fmt.Errorf("%d devices of %v bytes with %v bytes a second, want positive numbers", *f.Devices, *f.Memory, *f.Bandwidth)
	case len(f.Nodes) == 0 || len(f.Nodes) > maxNodes:
		return nil, fmt.Errorf("%d nodes, want 1 to %d", len(f.Nodes), maxNodes)
	}
	nodes := foreign.NewNodes()
	plain := make([]*config, len(f.Nodes))
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if err := nodes.Add(n.ID, n.Name); err != nil {
			return nil, err
		}
		for k := range n.Modes["1"] {
			if c := &n.Modes["1"][k]; c.ID == plainID {
				plain[i] = c
			}
		}
		c := plain[i]
		if c == nil {
			return nil, fmt.Errorf("node %d (%s): no %q configuration at tensor parallelism 1", *n.ID, n.Name, plainID)
		}
		if !(c.Time >= 0) || c.Time > maxMilliseconds || !bytes(c.A) || !bytes(c.B) || !bytes(c.Parameters) {
			return nil, fmt.Errorf("node %d (%s): time %v ms, memory %v and %v or parameters %v out of range", *n.ID, n.Name, c.Time, c.A, c.B, c.Parameters)
		}
	}
	// Each node has an output for every size that its edges carry.
	outs, in := make([][]float64, len(f.Nodes)), make([][][2]int, len(f.Nodes))
	for k, e := range f.Edges {
		u, v, err := nodes.Edge(k, e.From, e.To)
		if err != nil {
			return nil, err
		}
		if !bytes(e.Bytes) {
			return nil, fmt.Errorf("edge %d, from %d to %d: %v bytes", k, *e.From, *e.To, e.Bytes)
		}
		slot := slices.Index(outs[u], e.Bytes)
		if slot < 0 {
			slot = len(outs[u])
			outs[u] = append(outs[u], e.Bytes)
		}
		in[v] = append(in[v], [2]int{u, slot})
	}
	first := make([]int, len(f.Nodes)+1)
	for i := range outs {
		first[i+1] = first[i] + len(outs[i])
	}
	b := graph.NewBuilder(name)
	m := times.Model{Name: "profiled", Count: *f.Devices, Memory: units.Bytes(*f.Memory)}
	for i := range f.Nodes {
		n, c := &f.Nodes[i], plain[i]
		op := graph.Op{Kind: "Layer", Resident: units.Bytes(math.Ceil(c.A + c.B)), Params: int64(c.Parameters / 4), Forward: graph.None}
		var err error
		if op.Name, err = nodes.Name(n.Name, *n.ID); err != nil {
			return nil, err
		}
		m.Seconds = append(m.Seconds, c.Time*1e-3)
		var inputs []graph.TensorID
		for _, e := range in[i] {
			inputs = append(inputs, graph.TensorID(first[e[0]]+e[1]))
		}
		var tensors []graph.Tensor
		for _, size := range outs[i] {
			tensors = append(tensors, graph.Tensor{Bytes: units.Bytes(math.Round(size)), Resident: true})
		}
		b.Op(op, inputs, tensors...)
	}
	return times.Build(b, times.Table{Source: name, Models: []times.Model{m}, Bandwidth: *f.Bandwidth})
}
