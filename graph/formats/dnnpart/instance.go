package dnnpart

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/graph/formats/times"
	"placer/units"
)

// Instance is a file's graph, its times, and the ids that its splits use.
type Instance struct {
	*times.Instance
	IDs []int64 // [N] the file's id of each op
}

type file struct {
	MaxSize  *float64 `json:"maxSizePerFPGA"`
	MaxFPGAs *int     `json:"maxFPGAs"`
	MaxCPUs  *int     `json:"maxCPUs"`
	Nodes    []node   `json:"nodes"`
	Edges    []edge   `json:"edges"`
}

type node struct {
	ID          *int64         `json:"id"`
	Name        string         `json:"name"`
	Supported   foreign.Switch `json:"supportedOnFpga"`
	CPU         float64        `json:"cpuLatency"`
	Accelerator float64        `json:"fpgaLatency"`
	Backward    foreign.Switch `json:"isBackwardNode"`
	Color       *int64         `json:"colorClass"`
	Size        float64        `json:"size"`
}

type edge struct {
	From *int64  `json:"sourceId"`
	To   *int64  `json:"destId"`
	Cost float64 `json:"cost"`
	Size float64 `json:"size"`
}

// Limits of what a file may say; beyond them sums lose their meaning.
const (
	maxMilliseconds = 1e12
	maxNodes        = 1 << 20
	cpuMemory       = units.Bytes(1) << 46 // the host's memory bounds nothing
	// bytesPerSecond turns costs into bytes where the file gives no sizes.
	bytesPerSecond = 1 << 31
)

// Sniff reports whether data looks like an instance.
func Sniff(data []byte) bool {
	return foreign.HasKey(data, 3, "maxFPGAs", "maxSizePerFPGA", "maxCPUs")
}

// Import reads an instance. name is the file's name, for errors and, without
// its folder and ending, for the graph.
func Import(data []byte, name string) (*Instance, error) {
	return foreign.Import(data, name, func(f *file) (*Instance, error) { return f.instance(foreign.GraphName(name)) })
}

func (f *file) instance(name string) (*Instance, error) {
	switch {
	case f.MaxSize == nil || f.MaxFPGAs == nil || f.MaxCPUs == nil:
		return nil, fmt.Errorf("maxSizePerFPGA, maxFPGAs or maxCPUs is missing")
	case !(*f.MaxSize >= 1) || *f.MaxSize > float64(graph.MaxBytes):
		return nil, fmt.Errorf("maxSizePerFPGA is %v, want a positive number of bytes", *f.MaxSize)
	case *f.MaxFPGAs < 0 || *f.MaxCPUs < 0 || *f.MaxFPGAs+*f.MaxCPUs < 1 || *f.MaxFPGAs > 1<<16 || *f.MaxCPUs > 1<<16:
		return nil, fmt.Errorf("%d accelerators and %d CPU cores, want at least one device", *f.MaxFPGAs, *f.MaxCPUs)
	case len(f.Nodes) == 0 || len(f.Nodes) > maxNodes:
		return nil, fmt.Errorf("%d nodes, want 1 to %d", len(f.Nodes), maxNodes)
	}
	nodes, err := f.index()
	if err != nil {
		return nil, err
	}
	in, cost, err := f.edges(nodes)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder(name)
	acc := times.Model{Name: "accelerator", Count: *f.MaxFPGAs, Memory: units.Bytes(*f.MaxSize)}
	cpu := times.Model{Name: "cpu-core", CPU: true, Count: *f.MaxCPUs, Memory: cpuMemory}
	groups := map[int64]int32{}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		op := graph.Op{Kind: "Layer", Resident: units.Bytes(math.Ceil(n.Size)), Forward: graph.None}
		if op.Name, err = nodes.Name(n.Name, *n.ID); err != nil {
			return nil, err
		}
		if n.Backward {
			op.Phase = graph.Backward
		}
		if n.Color != nil {
			if groups[*n.Color] == 0 {
				groups[*n.Color] = int32(len(groups) + 1)
			}
			op.Group = groups[*n.Color]
		}
		// The node's size covers what it holds, so the output is a view of it.
		b.Op(op, in[i], graph.Tensor{Bytes: units.Bytes(math.Round(cost[i] * bytesPerSecond)), Resident: true})
		if !n.Supported {
			n.Accelerator = math.Inf(1)
		}
		acc.Seconds, cpu.Seconds = append(acc.Seconds, n.Accelerator*1e-3), append(cpu.Seconds, n.CPU*1e-3)
	}
	x, err := times.Build(b, times.Table{Source: name, Models: []times.Model{acc, cpu}, Bandwidth: bytesPerSecond, Transfer: cost})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(f.Nodes))
	for _, i := range b.Order() {
		ids = append(ids, *f.Nodes[i].ID)
	}
	return &Instance{x, ids}, nil
}

// index checks the nodes' figures.
func (f *file) index() (*foreign.Nodes, error) {
	nodes := foreign.NewNodes()
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if err := nodes.Add(n.ID, n.Name); err != nil {
			return nil, err
		}
		for _, ms := range []float64{n.CPU, n.Accelerator} {
			if !(ms >= 0) || ms > maxMilliseconds {
				return nil, fmt.Errorf("node %d (%s): latency %v ms, want 0 to %g", *n.ID, n.Name, ms, maxMilliseconds)
			}
		}
		if !(n.Size >= 0) || n.Size > float64(graph.MaxBytes) {
			return nil, fmt.Errorf("node %d (%s): size %v, want bytes", *n.ID, n.Name, n.Size)
		}
	}
	return nodes, nil
}

// edges returns each node's inputs, where the one output of node u is tensor u, and
// the seconds that each node's output takes, the same for all its edges.
func (f *file) edges(nodes *foreign.Nodes) (in [][]graph.TensorID, cost []float64, err error) {
	in, cost = make([][]graph.TensorID, len(f.Nodes)), make([]float64, len(f.Nodes))
	known := make([]bool, len(f.Nodes))
	for k, e := range f.Edges {
		u, v, err := nodes.Edge(k, e.From, e.To)
		if err != nil {
			return nil, nil, err
		}
		if !(e.Cost >= 0) || e.Cost > maxMilliseconds {
			return nil, nil, fmt.Errorf("edge %d, from %d to %d: cost %v ms, want 0 to %g", k, *e.From, *e.To, e.Cost, maxMilliseconds)
		}
		if known[u] && math.Abs(cost[u]-e.Cost) > 1e-6 {
			return nil, nil, fmt.Errorf("edge %d, from %d to %d: cost %v, but another edge of the same source costs %v", k, *e.From, *e.To, e.Cost, cost[u])
		}
		if !known[u] {
			known[u], cost[u] = true, e.Cost
		}
		in[v] = append(in[v], graph.TensorID(u))
	}
	for u := range cost {
		cost[u] *= 1e-3
	}
	return in, cost, nil
}
