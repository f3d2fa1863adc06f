package sched_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	pb "github.com/wamuir/graft/tensorflow/core/framework/cost_graph_go_proto"

	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/graph/formats/costgraph"
)

// A synthetic graph written as the paper's data was and read back is the same
// problem, times in microseconds and all.
func TestCostGraphRoundTrip(t *testing.T) {
	for k := range uint64(20) {
		p := synth.Default().Generate(rand.New(rand.NewPCG(2, k)))
		for name, write := range map[string]func(*bytes.Buffer) error{
			"text":   func(b *bytes.Buffer) error { return costgraph.WriteText(b, costGraph(p)) },
			"binary": func(b *bytes.Buffer) error { return costgraph.WriteBinary(b, costGraph(p)) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			q, err := readCostGraph(b.Bytes(), p.Name(), p.Machine())
			if err != nil {
				t.Fatal(err)
			}
			want, got := p.Spec(), q.Spec()
			want.Internal = make([]int64, p.N())
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s of graph %d reads back otherwise", name, k)
			}
		}
	}
}

func ExampleFromGraph() {
	p, err := readCostGraph([]byte(`node { name: "_SOURCE" }
		node { name: "a" id: 1 output_info { size: 64 } control_input: 0 compute_cost: 12 }
		node { name: "b" id: 2 input_info { preceding_node: 1 } compute_cost: 30 }`), "tiny", sched.TwoDevices())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.N(), p.T(), p.Time(), p.LowerBound())
	// Output: 3 2 [0 12 30] 42
}

// readCostGraph reads a CostGraphDef, text or binary, as a problem on m.
func readCostGraph(data []byte, name string, m sched.Machine) (*sched.Problem, error) {
	im, err := costgraph.Import(data, name)
	if err != nil {
		return nil, err
	}
	return sched.FromGraph(im.Graph, im.Seconds, m)
}

// costGraph returns p as a CostGraphDef, as the synthetic data was published:
// op i has id i, op 0 is called _SOURCE where it takes no time and reads nothing,
// the others node_0, node_1 and so on. Times are rounded to whole numbers.
func costGraph(p *sched.Problem) *pb.CostGraphDef {
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
