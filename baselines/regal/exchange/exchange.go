// Package exchange owns the ways between REGAL's scheduling problem and the
// graphs and files it comes from.
package exchange

import (
	"fmt"
	"math"

	pb "github.com/wamuir/graft/tensorflow/core/framework/cost_graph_go_proto"

	"placer/baselines/regal/sched"
	"placer/graph"
	"placer/graph/costgraph"
	"placer/units"
)

// FromGraph returns the problem of scheduling g on m with op times seconds, [N].
// Times become microseconds, to the millionth; sizes are bytes, those of
// variables included; an op with control successors makes one control tensor.
func FromGraph(g *graph.Graph, seconds []units.Seconds, m sched.Machine) (*sched.Problem, error) {
	if len(seconds) != g.NumOps() {
		panic(fmt.Sprintf("exchange: %d times for %d ops", len(seconds), g.NumOps()))
	}
	s := sched.Spec{Name: g.Name(), Time: make([]float64, len(seconds)), Internal: make([]int64, len(seconds)), Machine: m}
	control := make([][]int32, g.NumOps())
	for i := range graph.OpID(g.NumOps()) {
		s.Time[i] = math.Round(float64(seconds[i])*1e12) / 1e6
		s.Internal[i] = int64(g.Op(i).Workspace)
		for _, u := range g.Control(i) {
			control[u] = append(control[u], int32(i))
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		for t, end := g.Outputs(i); t < end; t++ {
			x := sched.Tensor{Producer: int32(i), Size: int64(g.Tensor(t).Bytes)}
			for _, v := range g.Consumers(t) {
				x.Consumers = append(x.Consumers, int32(v))
			}
			s.Tensors = append(s.Tensors, x)
		}
		if control[i] != nil {
			s.Tensors = append(s.Tensors, sched.Tensor{Producer: int32(i), Consumers: control[i], Control: true})
		}
	}
	return sched.New(s)
}

// Read reads a CostGraphDef, text or binary, as a problem on m.
func Read(data []byte, name string, m sched.Machine) (*sched.Problem, error) {
	im, err := costgraph.Import(data, name)
	if err != nil {
		return nil, err
	}
	return FromGraph(im.Graph, im.Seconds, m)
}

// CostGraph returns p as a CostGraphDef, as the synthetic data was published:
// op i has id i, op 0 is called _SOURCE where it takes no time and reads nothing,
// the others node_0, node_1 and so on. Times are rounded to whole numbers.
func CostGraph(p *sched.Problem) *pb.CostGraphDef {
	def := &pb.CostGraphDef{}
	port := make([]int32, p.T())
	shift := int32(0)
	for i := range int32(p.N()) {
		n := &pb.CostGraphDef_Node{Id: i, TemporaryMemorySize: p.Internal(i), ComputeCost: int64(p.Time()[i] + 0.5)}
		if i == 0 && p.Time()[0] == 0 && len(p.Inputs(0)) == 0 {
			n.Name, shift = "_SOURCE", 1
		} else {
			n.Name = fmt.Sprintf("node_%d", i-shift)
		}
		for t, end := p.Outputs(i); t < end; t++ {
			if !p.Control(t) {
				port[t] = int32(len(n.OutputInfo))
				n.OutputInfo = append(n.OutputInfo, &pb.CostGraphDef_Node_OutputInfo{Size: p.Size(t), AliasInputPort: -1})
			}
		}
		def.Node = append(def.Node, n)
	}
	for i, n := range def.Node {
		for _, t := range p.Inputs(int32(i)) {
			if p.Control(t) {
				n.ControlInput = append(n.ControlInput, p.Producer(t))
			} else {
				n.InputInfo = append(n.InputInfo, &pb.CostGraphDef_Node_InputInfo{PrecedingNode: p.Producer(t), PrecedingPort: port[t]})
			}
		}
	}
	return def
}
