// Package onnxcut owns the cutting of an ONNX model into one model a stage. Nodes,
// weights and types are copied as they are in the file.
package onnxcut

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph/formats/foreign"
)

// Field numbers of onnx.proto.
const (
	modelGraph = 7

	graphNode, graphInit, graphInput, graphOutput, graphInfo, graphSparse = 1, 5, 11, 12, 13, 15

	nodeInput, nodeOutput, nodeName, nodeOp, nodeAttr = 1, 2, 3, 4, 5
	attrGraph, attrGraphs                             = 6, 11
)

// maxNesting bounds how deep subgraphs are nested.
const maxNesting = 64

// Stage is a part of a model.
type Stage struct {
	Model           []byte
	Inputs, Outputs []string // tensors
	Nodes           []string // names, as package onnx names ops
}

// Node is what a cut is decided by: the node's name, as package onnx names its op, and
// its outputs.
type Node struct {
	Name    string
	Outputs []string

	op    string
	reads []string
	raw   []byte
}

// field is one field of a message.
type field struct {
	number protowire.Number
	whole  []byte // with its tag
	value  []byte // of a field with a length
}

func fields(data []byte, use func(f field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("a field's tag is damaged")
		}
		m := protowire.ConsumeFieldValue(number, kind, data[n:])
		if m < 0 {
			return fmt.Errorf("field %d is damaged or cut off", number)
		}
		f := field{number: number, whole: data[:n+m]}
		if kind == protowire.BytesType {
			f.value, _ = protowire.ConsumeBytes(data[n:])
		}
		if err := use(f); err != nil {
			return err
		}
		data = data[n+m:]
	}
	return nil
}

// named returns the string in a field of a message.
func named(data []byte, number protowire.Number) (name string) {
	_ = fields(data, func(f field) error { // a damaged one has no name
		if f.number == number && name == "" {
			name = string(f.value)
		}
		return nil
	})
	return name
}

// model is a file in pieces.
type model struct {
	rest, graphRest             []byte // fields that every stage has
	nodes                       []Node
	inits, inputs, outputs, any map[string][]byte // fields of the graph, whole
	outputOrder, inputOrder     []string
}

// Cut returns the model in data cut into as many stages as stage returns different
// numbers from 0 for. A node is no earlier than what it reads. Nodes for which stage returns
// less than 0 are where they are needed: what is computed from weights and constants alone is
// in each stage that reads it, and passes between none. elem returns the element
// type (of TensorProto.DataType) and the dimensions of output k of a node, for tensors between
// stages whose type the file does not record; 0 where it is not known.
func Cut(data []byte, name string, stage func(n *Node) int, elem func(n *Node, k int) (int32, []int64)) ([]Stage, error) {
	m, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	stages, err := m.cut(stage, elem)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return stages, nil
}

func parse(data []byte) (*model, error) {
	m := &model{inits: map[string][]byte{}, inputs: map[string][]byte{}, outputs: map[string][]byte{}, any: map[string][]byte{}}
	var graph []byte
	err := fields(data, func(f field) error {
		if f.number == modelGraph {
			graph = f.value
		} else {
			m.rest = append(m.rest, f.whole...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if graph == nil {
		return nil, fmt.Errorf("is no ONNX model: it has no graph")
	}
	return m, fields(graph, func(f field) error {
		switch f.number {
		case graphNode:
			n, err := parseNode(f.value, 0)
			if err != nil {
				return err
			}
			if n.raw = f.whole; n.Name == "" {
				n.Name = fmt.Sprintf("%s_%d", n.op, len(m.nodes))
			}
			m.nodes = append(m.nodes, n)
		case graphInit:
			m.inits[named(f.value, 8)] = f.whole
		case graphSparse: // SparseTensorProto.values is a TensorProto
			m.inits[named([]byte(named(f.value, 1)), 8)] = f.whole
		case graphInput:
			m.inputs[named(f.value, 1)] = f.whole
			m.inputOrder = append(m.inputOrder, named(f.value, 1))
		case graphOutput:
			m.outputs[named(f.value, 1)] = f.whole
			m.outputOrder = append(m.outputOrder, named(f.value, 1))
		case graphInfo:
			m.any[named(f.value, 1)] = f.value
		default:
			m.graphRest = append(m.graphRest, f.whole...)
		}
		return nil
	})
}

// parseNode reads a node with all that it and its subgraphs read.
func parseNode(data []byte, depth int) (n Node, err error) {
	if depth > maxNesting {
		return n, fmt.Errorf("subgraphs are nested deeper than %d", maxNesting)
	}
	subgraph := func(g []byte) error {
		return fields(g, func(f field) error {
			if f.number != graphNode {
				return nil
			}
			inner, err := parseNode(f.value, depth+1)
			n.reads = append(n.reads, inner.reads...)
			return err
		})
	}
	err = fields(data, func(f field) error {
		switch f.number {
		case nodeInput:
			n.reads = append(n.reads, string(f.value))
		case nodeOutput:
			n.Outputs = append(n.Outputs, string(f.value))
		case nodeName:
			n.Name = string(f.value)
		case nodeOp:
			n.op = string(f.value)
		case nodeAttr:
			return fields(f.value, func(a field) error {
				if a.number == attrGraph || a.number == attrGraphs {
					return subgraph(a.value)
				}
				return nil
			})
		}
		return nil
	})
	return n, err
}

func (m *model) cut(stage func(*Node) int, elem func(*Node, int) (int32, []int64)) ([]Stage, error) {
	in, count := m.homes(stage)
	by := map[string]int{}   // the node that makes a tensor
	last := map[string]int{} // the last stage that reads a tensor and does not make it
	for i := range m.nodes {
		for _, t := range m.nodes[i].Outputs {
			if t != "" {
				by[t] = i
			}
		}
		for _, t := range m.nodes[i].reads {
			for _, s := range in[i] {
				if k, made := by[t]; made && !slices.Contains(in[k], s) {
					last[t] = max(last[t], s)
				}
			}
		}
	}
	sizes := m.sizes()
	info := func(t string) ([]byte, error) {
		if b, ok := m.any[t]; ok {
			return b, nil
		}
		i := by[t]
		n := &m.nodes[i]
		e, dims := elem(n, slices.Index(n.Outputs, t))
		if e == 0 {
			return nil, fmt.Errorf("the cut passes tensor %q, whose type the file does not record: run onnx.shape_inference on it", foreign.Brief(t))
		}
		tensor := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(e))
		var shape []byte // of dimensions without a size, but for the length of sizes
		for _, d := range dims {
			var size []byte
			if len(dims) == 1 && sizes[t] {
				size = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(d))
			}
			shape = protowire.AppendBytes(protowire.AppendTag(shape, 1, protowire.BytesType), size)
		}
		tensor = protowire.AppendBytes(protowire.AppendTag(tensor, 2, protowire.BytesType), shape)
		typ := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), tensor)
		b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), t)
		return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), typ), nil
	}
	stages := make([]Stage, count)
	for s := range stages {
		x := &stages[s]
		graph := slices.Clone(m.graphRest)
		seen := map[string]bool{}
		for i := range m.nodes {
			if !slices.Contains(in[i], s) {
				continue
			}
			n := &m.nodes[i]
			graph = append(graph, n.raw...)
			x.Nodes = append(x.Nodes, n.Name)
			for _, t := range n.reads {
				if k, made := by[t]; seen[t] || t == "" || made && slices.Contains(in[k], s) {
					continue
				} else if seen[t] = true; made {
					b, err := info(t)
					if err != nil {
						return nil, err
					}
					graph = protowire.AppendBytes(protowire.AppendTag(graph, graphInput, protowire.BytesType), b)
					x.Inputs = append(x.Inputs, t)
					continue
				}
				if b, ok := m.inits[t]; ok {
					graph = append(graph, b...)
				}
				if b, ok := m.inputs[t]; ok {
					graph = append(graph, b...)
					if m.inits[t] == nil {
						x.Inputs = append(x.Inputs, t)
					}
				}
			}
			for _, t := range n.Outputs {
				out, is := m.outputs[t]
				switch {
				case t == "" || !is && last[t] <= s || is && s != in[i][0]:
					continue
				case is:
					graph = append(graph, out...)
				default:
					b, err := info(t)
					if err != nil {
						return nil, err
					}
					graph = protowire.AppendBytes(protowire.AppendTag(graph, graphOutput, protowire.BytesType), b)
				}
				x.Outputs = append(x.Outputs, t)
			}
		}
		x.Model = protowire.AppendBytes(protowire.AppendTag(slices.Clone(m.rest), modelGraph, protowire.BytesType), graph)
	}
	return slices.DeleteFunc(stages, func(x Stage) bool { return len(x.Nodes) == 0 }), nil
}
