package onnxcut

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of the device configurations of IR version 11.
const (
	modelIR, modelConfiguration  = 1, 26
	nodeMetadata, nodeDeviceConf = 9, 10

	configurationIR = 11
)

// configuration names the device configuration that Annotate writes.
const configuration = "placer"

// layerAnnotation is the key of a node's metadata by which a session of ONNX Runtime
// assigns nodes to providers (session.layer_assignment_settings).
const layerAnnotation = "layer_ann"

// Annotate returns the model in data with the device of each node: as a pipeline stage of
// a device configuration (ONNX IR version 11), and as a layer annotation for ONNX
// Runtime. device returns an index into devices. Annotations of before are replaced.
func Annotate(data []byte, name string, devices []string, device func(n *Node) int) ([]byte, error) {
	out, err := annotate(data, devices, device)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

func annotate(data []byte, devices []string, device func(n *Node) int) ([]byte, error) {
	var out []byte
	version := uint64(configurationIR)
	graphs := 0
	err := fields(data, func(f field) error {
		switch f.number {
		case modelIR:
			_, _, n := protowire.ConsumeTag(f.whole)
			if v, m := protowire.ConsumeVarint(f.whole[n:]); m > 0 {
				version = max(version, v)
			}
		case modelConfiguration:
			if named(f.value, 1) != configuration {
				out = append(out, f.whole...)
			}
		case modelGraph:
			graphs++
			g, err := annotateGraph(f.value, devices, device)
			out = protowire.AppendBytes(protowire.AppendTag(out, modelGraph, protowire.BytesType), g)
			return err
		default:
			out = append(out, f.whole...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if graphs == 0 {
		return nil, fmt.Errorf("is no ONNX model: it has no graph")
	}
	c := text(nil, 1, configuration)
	c = protowire.AppendVarint(protowire.AppendTag(c, 2, protowire.VarintType), uint64(len(devices)))
	for _, d := range devices {
		c = text(c, 3, d)
	}
	out = text(out, modelConfiguration, string(c))
	return protowire.AppendVarint(protowire.AppendTag(out, modelIR, protowire.VarintType), version), nil
}

func annotateGraph(data []byte, devices []string, device func(n *Node) int) (out []byte, err error) {
	nodes := 0
	err = fields(data, func(f field) error {
		if f.number != graphNode {
			out = append(out, f.whole...)
			return nil
		}
		n, err := parseNode(f.value, 0)
		if err != nil {
			return err
		}
		if n.Name == "" {
			n.Name = fmt.Sprintf("%s_%d", named(f.value, nodeOp), nodes)
		}
		nodes++
		d := device(&n)
		if d < 0 || d >= len(devices) {
			return fmt.Errorf("node %s is on device %d of %d", n.Name, d, len(devices))
		}
		var b []byte
		if err := fields(f.value, func(x field) error {
			before := x.number == nodeMetadata && named(x.value, 1) == layerAnnotation || x.number == nodeDeviceConf && named(x.value, 1) == configuration
			if !before {
				b = append(b, x.whole...)
			}
			return nil
		}); err != nil {
			return err
		}
		b = text(b, nodeMetadata, string(text(text(nil, 1, layerAnnotation), 2, devices[d])))
		c := text(nil, 1, configuration)
		c = protowire.AppendVarint(protowire.AppendTag(c, 3, protowire.VarintType), uint64(d))
		b = text(b, nodeDeviceConf, string(c))
		out = text(out, graphNode, string(b))
		return nil
	})
	return out, err
}

func text(b []byte, number protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}
