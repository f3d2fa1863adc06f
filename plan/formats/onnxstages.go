package formats

import (
	"bytes"
	"encoding/json"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/plan"
)

// onnxFormat is the form of the list of models that an ONNX model is cut into.
const onnxFormat = "placer onnx stages 1"

// ONNXStages is the list of the models that an ONNX model is cut into, a session each.
type ONNXStages struct {
	Format string      `json:"format"` // onnxFormat, which Write sets
	Stages []ONNXStage `json:"stages"`
}

// ONNXStage is one model, with the names of its tensors and nodes.
type ONNXStage struct {
	File    string   `json:"file"`
	Device  string   `json:"device"` // of the machine
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	Nodes   []string `json:"nodes"`
}

// Bytes returns the list as JSON.
func (x *ONNXStages) Bytes() ([]byte, error) {
	x.Format = onnxFormat
	b, err := json.MarshalIndent(x, "", " ")
	return append(b, '\n'), err
}

func isONNXStages(data []byte) bool {
	return bytes.Contains(data[:min(len(data), 64)], []byte(onnxFormat))
}

// readONNXStages reads the devices of the stages as a placement of the ops of their
// nodes. What is no node (an input, a weight) is with the first op that reads it.
func readONNXStages(data []byte, name string, g *graph.Graph, m *hw.Machine) (*plan.Plan, error) {
	var f ONNXStages
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	of := map[string]int{}
	for _, s := range f.Stages {
		d := -1
		for i := range m.Devices {
			if m.Devices[i].Name == s.Device {
				d = i
			}
		}
		if d < 0 {
			return nil, fmt.Errorf("%s: stage %q is on device %q, which machine %s lacks", name, s.File, s.Device, m.Name)
		}
		for _, n := range s.Nodes {
			of[n] = d
		}
	}
	p := &plan.Plan{Graph: g.Hash(), Machine: m.Name, Method: "onnx", Decision: plan.Decision{Device: make([]uint8, g.NumOps())}}
	known := 0
	for i := g.NumOps() - 1; i >= 0; i-- {
		id := graph.OpID(i)
		if d, ok := of[g.Op(id).Name]; ok {
			p.Device[i] = uint8(d)
			known++
			continue
		}
		first, end := g.Outputs(id)
		for t := first; t < end; t++ {
			if users := g.Consumers(t); len(users) > 0 {
				p.Device[i] = p.Device[users[0]]
				break
			}
		}
	}
	if known == 0 {
		return nil, fmt.Errorf("%s: none of its nodes is one of the graph's", name)
	}
	if err := p.Check(g, m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
