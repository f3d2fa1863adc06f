package formats

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/formats/tensorflow"
	"placer/hw"
	"placer/plan"
)

// TensorFlowDevice is TensorFlow's name of device d of m: GPUs and CPUs are numbered
// apart.
func TensorFlowDevice(m *hw.Machine, d uint8) string {
	n := 0
	for i := range d {
		if (m.Devices[i].Kind == hw.GPU) == (m.Devices[d].Kind == hw.GPU) {
			n++
		}
	}
	if m.Devices[d].Kind == hw.GPU {
		return fmt.Sprintf("/device:GPU:%d", n)
	}
	return fmt.Sprintf("/device:CPU:%d", n)
}

// readGraphDef reads the devices of the nodes of a TensorFlow graph as a placement of
// the ops of those names. A node without a device is where TensorFlow puts it: on the
// first accelerator.
func readGraphDef(data []byte, name string, g *graph.Graph, m *hw.Machine) (*plan.Plan, error) {
	devices, err := tensorflow.Devices(data, name)
	if err != nil {
		return nil, err
	}
	of := map[string]uint8{}
	for d := range uint8(len(m.Devices)) {
		of[TensorFlowDevice(m, d)] = d
	}
	first := m.Accelerators()[0]
	p := &plan.Plan{Graph: g.Hash(), Machine: m.Name, Method: "graphdef", Decision: plan.Decision{Device: make([]uint8, g.NumOps())}}
	known := 0
	for i := range p.Device {
		p.Device[i] = first
		text, ok := devices[g.Op(graph.OpID(i)).Name]
		if !ok {
			continue
		}
		short := text
		if at := strings.LastIndex(text, "/device:"); at >= 0 {
			short = text[at:]
		}
		d, ok := of[strings.ReplaceAll(short, ":*", ":0")]
		if !ok {
			return nil, fmt.Errorf("%s: op %d (%s) is on %s, which machine %s lacks", name, i, g.Op(graph.OpID(i)).Name, text, m.Name)
		}
		p.Device[i] = d
		known++
	}
	if known == 0 {
		return nil, fmt.Errorf("%s: its nodes name no devices, or are none of the graph's", name)
	}
	if err := p.Check(g, m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
