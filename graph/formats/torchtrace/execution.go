package torchtrace

import (
	"encoding/json"
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/internal/words"
	"placer/units"
)

// Imported is a step with what its file holds.
type Imported struct {
	Graph *graph.Graph
	// Seconds are the measured times of the ops, [N]; nil for an execution trace.
	Seconds      []units.Seconds
	Nodes, Edges int // of the file
	Notes        []string
}

// execution is an execution trace, of schema 1.0 or of Chakra's 1.1.
type execution struct {
	Schema string   `json:"schema"`
	Nodes  []etNode `json:"nodes"`
}

type etNode struct {
	ID      int64           `json:"id"`
	Name    string          `json:"name"`
	Parent  int64           `json:"parent"`
	Control int64           `json:"ctrl_deps"`
	Inputs  json.RawMessage `json:"inputs"`
	Outputs json.RawMessage `json:"outputs"`
	InS     json.RawMessage `json:"input_shapes"`
	OutS    json.RawMessage `json:"output_shapes"`
	InT     []string        `json:"input_types"`
	OutT    []string        `json:"output_types"`
}

// etArgs are the arguments of one side in schema 1.1.
type etArgs struct {
	Values []json.RawMessage `json:"values"`
	Shapes []json.RawMessage `json:"shapes"`
	Types  []string          `json:"types"`
}

// tensor is one that an operator reads or writes.
type tensor struct {
	id, storage int64
	bytes       int64
	dtype       graph.DType
	shape       []int64
}

// SniffExecution reports whether data is an execution trace.
func SniffExecution(data []byte) bool {
	head := string(data[:min(len(data), 4096)])
	return strings.Contains(head, `"schema"`) && strings.Contains(head, `"pid"`) && foreign.HasKey(data[:min(len(data), 4096)], 1, "schema")
}

// ImportExecution reads an execution trace: its innermost operators of known arithmetic (leaves),
// in the order in which they began. An op reads a tensor from the op that wrote it, or its storage, last.
func ImportExecution(data []byte, name string) (*Imported, error) {
	return foreign.Import(data, name, func(f *execution) (*Imported, error) { return f.graph(name) })
}

func (f *execution) graph(name string) (*Imported, error) {
	x := &Imported{Nodes: len(f.Nodes)}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if n.Control != 0 {
			n.Parent = n.Control
		}
	}
	b := graph.NewBuilder(graphName(name))
	names, known := foreign.NewNames(), kinds()
	byTensor, byStorage := map[int64]graph.TensorID{}, map[int64]graph.TensorID{}
	open := map[graph.Kind]int{}
	for _, n := range leaves(f.Nodes, known) {
		in, err := n.tensors(n.Inputs, n.InS, n.InT)
		if err != nil {
			return nil, fmt.Errorf("node %d (%s): inputs: %w", n.ID, foreign.Brief(n.Name), err)
		}
		out, err := n.tensors(n.Outputs, n.OutS, n.OutT)
		if err != nil {
			return nil, fmt.Errorf("node %d (%s): outputs: %w", n.ID, foreign.Brief(n.Name), err)
		}
		if len(in)+len(out) == 0 {
			continue
		}
		kind := kindOf(known, n.Name)
		op := graph.Op{Name: names.Take(strings.TrimPrefix(n.Name, "aten::") + fmt.Sprintf("_%d", n.ID)), Kind: kind, Bytes: graph.Auto, Forward: graph.None}
		var ids []graph.TensorID
		for _, t := range in {
			id, ok := byTensor[t.id]
			if !ok {
				id, ok = byStorage[t.storage]
			}
			if !ok {
				input := graph.Op{Name: names.Take(fmt.Sprintf("tensor_%d", t.id)), Kind: "Placeholder", DType: t.dtype, Forward: graph.None}
				id = b.Output(b.Op(input, nil, t.made()), 0)
				byTensor[t.id], byStorage[t.storage] = id, id
			}
			ids = append(ids, id)
			x.Edges++
		}
		if len(out) > 0 {
			op.DType = out[0].dtype
		} else {
			op.DType = in[0].dtype
		}
		product, repeats := n.product(kind, in, out)
		if product.IsZero() {
			op.FLOPs = elementwise(kind, in, out)
		} else {
			op.GEMM, op.FLOPs, op.DType = product, product.FLOPs()*units.FLOPs(max(repeats, 1)), in[0].dtype
		}
		if repeats > 1 {
			op.Repeats, op.Bytes = repeats, recurrentBytes(in, out, repeats)
		}
		if unpriced(op) {
			open[kind]++
		}
		var made []graph.Tensor
		for _, t := range out {
			made = append(made, t.made())
		}
		id := b.Op(op, ids, made...)
		for k, t := range out {
			byTensor[t.id], byStorage[t.storage] = b.Output(id, k), b.Output(id, k)
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	x.Graph = g
	x.Notes = []string{fmt.Sprintf("an execution trace has no times: its %d innermost operators of %s are costed by their shapes", g.NumOps(), words.Count(x.Nodes, "node", "nodes"))}
	if len(open) > 0 {
		x.Notes = append(x.Notes, openNote(open))
	}
	return x, nil
}

// isOperator reports whether a node is an operator of PyTorch, not an annotation or the
// process.
func isOperator(name string) bool {
	return strings.Contains(name, "::") && !strings.Contains(name, ": ") && !strings.HasPrefix(name, "[") && !strings.HasPrefix(name, "#")
}

func graphName(name string) string {
	base := strings.TrimSuffix(foreign.GraphName(strings.TrimSuffix(name, ".gz")), ".json")
	return foreign.Clean(base)
}

// made returns the builder's form of t.
func (t *tensor) made() graph.Tensor {
	return graph.Tensor{DType: t.dtype, Shape: t.shape, Bytes: units.Bytes(t.bytes)}
}

// tensors returns the tensors of one side of a node; lists of them count one by one.
func (n *etNode) tensors(side, shapes json.RawMessage, types []string) (list []tensor, err error) {
	a, err := arguments(side, shapes, types)
	if err != nil {
		return nil, err
	}
	values, dims := a.Values, a.Shapes
	for k, typ := range a.Types {
		if k >= len(values) || !strings.Contains(typ, "Tensor(") {
			continue
		}
		var shape json.RawMessage
		if k < len(dims) {
			shape = dims[k]
		}
		list, err = appendTensors(list, values[k], shape, typ)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", k, err)
		}
	}
	return list, nil
}

// arguments returns those of one side of a node, of either schema.
func arguments(side, shapes json.RawMessage, types []string) (a etArgs, err error) {
	if strings.HasPrefix(strings.TrimSpace(string(side)), "{") {
		err = json.Unmarshal(side, &a)
	} else if a.Types = types; len(side) > 0 {
		err = json.Unmarshal(side, &a.Values)
	}
	if err != nil {
		return a, fmt.Errorf("%s", foreign.Brief(err.Error()))
	}
	if len(shapes) > 0 && a.Shapes == nil && json.Unmarshal(shapes, &a.Shapes) != nil {
		return a, fmt.Errorf("shapes that are no list")
	}
	return a, nil
}

// appendTensors adds a tensor [id, storage, offset, elements, size, device], or those of
// a list.
func appendTensors(to []tensor, value, shape json.RawMessage, typ string) ([]tensor, error) {
	var parts []json.RawMessage
	if json.Unmarshal(value, &parts) != nil || len(parts) == 0 {
		return to, nil // none
	}
	if strings.HasPrefix(strings.TrimSpace(string(parts[0])), "[") {
		var shapes []json.RawMessage
		if json.Unmarshal(shape, &shapes) != nil {
			shapes = nil
		}
		inner := strings.Split(strings.TrimSuffix(strings.TrimPrefix(typ, "GenericList["), "]"), ",")
		for k, p := range parts {
			var s json.RawMessage
			if k < len(shapes) {
				s = shapes[k]
			}
			one := inner[min(k, len(inner)-1)]
			if !strings.HasPrefix(one, "Tensor(") {
				continue
			}
			var err error
			if to, err = appendTensors(to, p, s, one); err != nil {
				return nil, err
			}
		}
		return to, nil
	}
	if len(parts) < 5 {
		return nil, fmt.Errorf("a tensor of %d fields, want 5 or more", len(parts))
	}
	var n [5]int64
	for i := range n {
		if json.Unmarshal(parts[i], &n[i]) != nil {
			return nil, fmt.Errorf("field %d of a tensor is no whole number", i)
		}
	}
	t := tensor{id: n[0], storage: n[1]}
	if n[3] < 0 || n[4] < 0 || n[4] > 64 || n[3] > 1<<44 {
		return nil, fmt.Errorf("a tensor of %d elements of %d bytes", n[3], n[4])
	}
	t.bytes = n[3] * n[4]
	t.dtype = dtypeOf(typ, n[4])
	var dims graph.Shape
	if json.Unmarshal(shape, &dims) == nil && dims != nil {
		if count, err := dims.Elements(); err == nil && count <= 1<<44 {
			t.shape = dims
		}
	}
	return append(to, t), nil
}

// dtypeOf returns the element type of "Tensor(float)".
func dtypeOf(typ string, size int64) graph.DType {
	switch strings.TrimSuffix(strings.TrimPrefix(typ, "Tensor("), ")") {
	case "double":
		return graph.F64
	case "c10::Half":
		return graph.F16
	case "c10::BFloat16":
		return graph.BF16
	case "int":
		return graph.I32
	case "long int", "long":
		return graph.I64
	case "bool":
		return graph.Bool
	case "unsigned char", "signed char":
		return graph.I8
	}
	switch {
	case strings.Contains(typ, "Float8"):
		return graph.F8
	case size == 1:
		return graph.I8
	}
	return graph.F32
}
