package costgraph

import (
	"fmt"
	"path"
	"regexp"

	pb "github.com/wamuir/graft/tensorflow/core/framework/cost_graph_go_proto"

	"placer/graph"
	"placer/units"
)

// Imported is a graph with what a graph.Graph has no place for.
type Imported struct {
	Graph *graph.Graph
	// Seconds are the op times of the file, compute_cost, [N] by graph.OpID.
	Seconds []units.Seconds
	// UnknownSizes counts outputs of unknown (negative) size, taken for empty.
	UnknownSizes int
}

// Import reads a cost graph, text or binary; name is the file's and the graph's.
//
// Nodes refer to each other by id. An op's kind is the last part of its name
// where that names a known kind, "CostGraphNode" otherwise; its FLOPs are not
// known and stay 0. A node's temporary memory becomes the op's workspace.
func Import(data []byte, name string) (*Imported, error) {
	def, err := Decode(data, name)
	if err != nil {
		return nil, err
	}
	return FromDef(def, name)
}

// FromDef is Import of a decoded file.
func FromDef(def *pb.CostGraphDef, name string) (*Imported, error) {
	byID := make(map[int32]int, len(def.Node))
	for i, n := range def.Node {
		if !graph.OneLine(n.Name) {
			return nil, fmt.Errorf("%s: node %d: name %q has control characters", name, i, n.Name)
		}
		if k, taken := byID[n.Id]; taken {
			return nil, fmt.Errorf("%s: node %d (%s): id %d is that of node %d (%s) too", name, i, n.Name, n.Id, k, def.Node[k].Name)
		}
		byID[n.Id] = i
	}
	im := &Imported{}
	b := graph.NewBuilder(name)
	taken := make(map[string]bool, len(def.Node))
	for i, n := range def.Node {
		if err := check(def, byID, name, i); err != nil {
			return nil, err
		}
		var outs []graph.Tensor
		for _, o := range n.OutputInfo {
			size := o.Size
			if size < 0 {
				size = 0
				im.UnknownSizes++
			}
			outs = append(outs, graph.Tensor{Bytes: units.Bytes(size)})
		}
		b.Op(graph.Op{Name: unique(taken, n.Name, i), Kind: kindOf(n.Name), Bytes: graph.Auto, Workspace: units.Bytes(n.TemporaryMemorySize), Forward: graph.None}, nil, outs...)
	}
	for i, n := range def.Node {
		var in []graph.TensorID
		for _, x := range n.InputInfo {
			in = append(in, b.Output(graph.OpID(byID[x.PrecedingNode]), int(x.PrecedingPort)))
		}
		b.Replace(graph.OpID(i), in)
		for _, c := range n.ControlInput {
			b.Control(graph.OpID(byID[c]), graph.OpID(i))
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	im.Graph = g
	for _, i := range b.Order() {
		im.Seconds = append(im.Seconds, units.Seconds(float64(def.Node[i].ComputeCost)/1e6))
	}
	return im, nil
}

// check finds faults of node i by itself and in what it refers to.
func check(def *pb.CostGraphDef, byID map[int32]int, name string, i int) error {
	n := def.Node[i]
	fault := func(format string, a ...any) error {
		return fmt.Errorf("%s: node %d (%s): "+format, append([]any{name, i, n.Name}, a...)...)
	}
	for k, x := range n.InputInfo {
		from, ok := byID[x.PrecedingNode]
		if !ok {
			return fault("input %d: no node has id %d", k, x.PrecedingNode)
		}
		if p := def.Node[from]; x.PrecedingPort < 0 || int(x.PrecedingPort) >= len(p.OutputInfo) {
			return fault("input %d: node %d (%s) has %d outputs, want port %d", k, from, p.Name, len(p.OutputInfo), x.PrecedingPort)
		}
	}
	for k, c := range n.ControlInput {
		if _, ok := byID[c]; !ok {
			return fault("control input %d: no node has id %d", k, c)
		}
	}
	for k, o := range n.OutputInfo {
		if o.Size > 1<<50 {
			return fault("output %d: size %d is too large", k, o.Size)
		}
	}
	if n.ComputeCost < 0 || n.TemporaryMemorySize < 0 {
		return fault("compute cost %d and temporary memory %d, want at least 0", n.ComputeCost, n.TemporaryMemorySize)
	}
	return nil
}

// unique returns n, or n with a suffix where it is empty or taken, and takes it.
func unique(taken map[string]bool, n string, i int) string {
	if n == "" {
		n = fmt.Sprintf("node_%d", i)
	}
	for base, k := n, 1; ; k++ {
		if !taken[n] {
			taken[n] = true
			return n
		}
		n = fmt.Sprintf("%s#%d", base, k)
	}
}

var numbered = regexp.MustCompile(`_\d+$`)

func kindOf(name string) graph.Kind {
	k := graph.Kind(numbered.ReplaceAllString(path.Base(name), ""))
	if _, known := graph.FactsOf(k); known {
		return k
	}
	return "CostGraphNode"
}

// Export returns g as a cost graph: ids are OpIDs, times are rounded to whole
// microseconds, workspace is temporary memory. seconds is [N].
func Export(g *graph.Graph, seconds []units.Seconds) *pb.CostGraphDef {
	if len(seconds) != g.NumOps() {
		panic(fmt.Sprintf("costgraph: %d times for %d ops", len(seconds), g.NumOps()))
	}
	def := &pb.CostGraphDef{}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		n := &pb.CostGraphDef_Node{Name: o.Name, Id: int32(i), TemporaryMemorySize: int64(o.Workspace), ComputeCost: int64(float64(seconds[i])*1e6 + 0.5)}
		for _, t := range g.Inputs(i) {
			p := g.Tensor(t).Producer
			first, _ := g.Outputs(p)
			n.InputInfo = append(n.InputInfo, &pb.CostGraphDef_Node_InputInfo{PrecedingNode: int32(p), PrecedingPort: int32(t - first)})
		}
		for t, end := g.Outputs(i); t < end; t++ {
			n.OutputInfo = append(n.OutputInfo, &pb.CostGraphDef_Node_OutputInfo{Size: int64(g.Tensor(t).Bytes), AliasInputPort: -1})
		}
		for _, c := range g.Control(i) {
			n.ControlInput = append(n.ControlInput, int32(c))
		}
		def.Node = append(def.Node, n)
	}
	return def
}
