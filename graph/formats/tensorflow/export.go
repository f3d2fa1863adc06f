package tensorflow

import (
	"fmt"
	"slices"
	"strings"

	graphpb "github.com/wamuir/graft/tensorflow/core/framework/graph_go_proto"
	"google.golang.org/protobuf/proto"

	"placer/graph/formats/foreign"
)

// Placed is a node of a schedule: its name, and the device that TensorFlow is to run it
// on.
type Placed struct{ Name, Device string }

// Place returns the graph of data as a binary GraphDef whose nodes have the devices of
// the schedule, which is in the order of their start. A device of TensorFlow runs
// whatever is ready, several at a time, so the order is written as a chain of control
// edges per device. Nodes of functions and loops stay as they are: those are an error.
func Place(data []byte, name string, schedule []Placed) ([]byte, error) {
	f, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: TensorFlow: %w", name, err)
	}
	def := proto.Clone(f.def).(*graphpb.GraphDef)
	at := make(map[string]int, len(def.Node))
	for i, n := range def.Node {
		at[n.Name] = i
		if strings.HasSuffix(n.Op, "NextIteration") {
			return nil, fmt.Errorf("%s: node %d (%s): the nodes of a loop have no order that a chain of control edges could write", name, i, foreign.Brief(n.Name))
		}
	}
	last := map[string]string{}
	for _, p := range schedule {
		i, ok := at[p.Name]
		if !ok {
			return nil, fmt.Errorf("%s: %s is in a function: only nodes of the main graph can be placed", name, foreign.Brief(p.Name))
		}
		n := def.Node[i]
		n.Device = p.Device
		if before := last[p.Device]; before != "" && !reads(n.Input, before) {
			n.Input = append(n.Input, "^"+before)
		}
		last[p.Device] = p.Name
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(def)
}

// reads reports whether one of inputs is of that node.
func reads(inputs []string, node string) bool {
	return slices.ContainsFunc(inputs, func(in string) bool {
		in = strings.TrimPrefix(in, "^")
		name, _, _ := strings.Cut(in, ":")
		return name == node
	})
}

// Devices returns the device of each node of a graph that names one.
func Devices(data []byte, name string) (map[string]string, error) {
	f, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: TensorFlow: %w", name, err)
	}
	devices := map[string]string{}
	for _, n := range f.def.Node {
		if n.Device != "" {
			devices[n.Name] = n.Device
		}
	}
	return devices, nil
}
