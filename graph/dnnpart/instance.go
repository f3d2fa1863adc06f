package dnnpart

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/internal/foreign"
	"placer/times"
	"placer/units"
)

// Instance is a file's graph, its times, and the ids that its splits use.
type Instance struct {
	Graph *graph.Graph
	Times *times.Table
	IDs   []int64 // [N] the file's id of each op
}

// The names of the two device models.
const (
	Accelerator = "accelerator"
	CPU         = "cpu-core"
)

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
	for _, k := range foreign.Keys(data, 3) {
		if k == "maxFPGAs" || k == "maxSizePerFPGA" || k == "maxCPUs" {
			return true
		}
	}
	return false
}

// Import reads an instance. name is the file's name, for errors and, without
// its folder and ending, for the graph.
func Import(data []byte, name string) (*Instance, error) {
	var f file
	if err := foreign.Decode(data, name, &f); err != nil {
		return nil, err
	}
	x, err := f.instance(foreign.GraphName(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
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
	groups := map[int64]int32{}
	byName := map[string]int{}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		op := graph.Op{Kind: "Layer", Resident: units.Bytes(math.Ceil(n.Size)), Forward: graph.None}
		if op.Name, err = nodes.Name(n.Name, *n.ID); err != nil {
			return nil, err
		}
		byName[op.Name] = i
		if n.Backward {
			op.Phase = graph.Backward
		}
		if n.Color != nil {
			if groups[*n.Color] == 0 {
				groups[*n.Color] = int32(len(groups) + 1)
			}
			op.Group = groups[*n.Color]
		}
		inputs := make([]graph.TensorID, 0, len(in[i]))
		for _, u := range in[i] {
			inputs = append(inputs, graph.TensorID(u)) // one output each: tensor u is node u's
		}
		// The node's size covers what it holds, so the output is a view of it.
		b.Op(op, inputs, graph.Tensor{Bytes: units.Bytes(math.Round(cost[i] * 1e-3 * bytesPerSecond)), Resident: true})
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	x := &Instance{Graph: g, IDs: make([]int64, g.NumOps())}
	acc := times.Model{Name: Accelerator, Count: *f.MaxFPGAs, Memory: units.Bytes(*f.MaxSize), Seconds: make([]float64, g.NumOps())}
	cpu := times.Model{Name: CPU, CPU: true, Count: *f.MaxCPUs, Memory: cpuMemory, Seconds: make([]float64, g.NumOps())}
	x.Times = &times.Table{GraphHash: g.Hash(), Source: name, Bandwidth: bytesPerSecond, Transfer: make([]float64, g.NumTensors())}
	for to := range g.NumOps() {
		i := byName[g.Op(graph.OpID(to)).Name]
		n := &f.Nodes[i]
		x.IDs[to] = *n.ID
		acc.Seconds[to], cpu.Seconds[to] = n.Accelerator*1e-3, n.CPU*1e-3
		if !n.Supported {
			acc.Seconds[to] = math.Inf(1)
		}
		t, _ := g.Outputs(graph.OpID(to))
		x.Times.Transfer[t] = cost[i] * 1e-3
	}
	x.Times.Models = []times.Model{acc, cpu}
	return x, x.Times.Check(g)
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

// edges returns the sources of each node's inputs and the cost of each node's
// output in milliseconds, which is one for all its edges.
func (f *file) edges(nodes *foreign.Nodes) (in [][]int, cost []float64, err error) {
	in, cost = make([][]int, len(f.Nodes)), make([]float64, len(f.Nodes))
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
		in[v] = append(in[v], u)
	}
	return in, cost, nil
}
