package tensorflow

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
)

// Of a function what its results need runs, and what has an effect; TensorFlow leaves out the
// rest.
func TestNeededNodes(t *testing.T) {
	inner := func(nodes string) string { return strings.ReplaceAll(nodes, "node {", "node_def {") }
	text := holder("x", 2, 4) + holder("w", 4, 4) + node("v", "VarHandleOp", nil, "dtype", float, "shape", dims(2, 4)) + node("f", "PartitionedCall", []string{"x", "w", "v"}, "f", `func { name: "g" }`) +
		"library {\nfunction {\n signature { name: \"g\" input_arg { name: \"x\" type: DT_FLOAT } input_arg { name: \"w\" type: DT_FLOAT } input_arg { name: \"v\" type: DT_RESOURCE } output_arg { name: \"y\" type: DT_FLOAT } }\n" +
		inner(node("traced", "MatMul", []string{"x", "w"}, "T", float)+node("only", "Tanh", []string{"traced:product:0"}, "T", float)+node("z", "MatMul", []string{"x", "w"}, "T", float)+
			node("sum", "Add", []string{"x", "z:product:0"}, "T", float)+node("set", "AssignVariableOp", []string{"v", "sum:z:0"}, "dtype", float)+node("kept", "Neg", []string{"x"}, "T", float)+node("done", "NoOp", []string{"^kept"})) +
		" ret { key: \"y\" value: \"z:product:0\" }\n control_ret { key: \"done\" value: \"done\" }\n}\n}\n"
	x, err := Import([]byte(text), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range x.Graph.NumOps() {
		if name, ok := strings.CutPrefix(x.Graph.Op(graph.OpID(i)).Name, "f/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if want := []string{"done", "kept", "set", "sum", "z"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// A size that an input leaves open has a name.
func TestOpenInputs(t *testing.T) {
	text := node("ids", "Placeholder", nil, "dtype", counts, "shape", dims(-1, -1)) + holder("table", 50, 8) + integer("axis", "0") + node("rows", "GatherV2", []string{"table", "ids", "axis"}, "Tparams", float)
	x, err := Import([]byte(text), "f", map[string]int64{"batch": 3, "ids[1]": 5})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := find(t, x.Graph, "rows")
	first, _ := x.Graph.Outputs(id)
	if s := x.Graph.Tensor(first).Shape; !slices.Equal(s, []int64{3, 5, 8}) || len(x.UnknownDims) > 0 {
		t.Errorf("%v, unknown %q", s, x.UnknownDims)
	}
	if x, err = Import([]byte(text), "f", nil); err != nil {
		t.Fatal(err)
	}
	if want := "2 unknown dimensions are taken for 1 where they come first, for 1 elsewhere; --dim batch=N, --dim ids[1]=N"; !slices.Contains(x.Notes, want) || !slices.Contains(x.Dims, "ids[1]") {
		t.Errorf("notes %q, open %q", x.Notes, x.Dims)
	}
}

// TensorFlow's optimizer leaves the values of constants out that are zero, and all but the
// first of equal ones.
func TestZerosLeftOut(t *testing.T) {
	zeros := node("begin", "Const", nil, "dtype", counts, "value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } }")
	sizes := node("size", "Const", nil, "dtype", counts, "value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 3 }")
	x, err := Import([]byte(holder("x", 8, 4)+zeros+sizes+node("part", "Slice", []string{"x", "begin", "size"}, "T", float)), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := find(t, x.Graph, "part")
	first, _ := x.Graph.Outputs(id)
	if s := x.Graph.Tensor(first).Shape; !slices.Equal(s, []int64{3, 3}) {
		t.Errorf("%v", s)
	}
	if x, err = Import([]byte(holder("x", 3, 3)+zeros+node("sum", "Sum", []string{"x", "begin"}, "T", float)), "f", nil); err != nil {
		t.Fatal(err)
	}
	id, _ = find(t, x.Graph, "sum")
	first, _ = x.Graph.Outputs(id)
	if s := x.Graph.Tensor(first).Shape; !slices.Equal(s, []int64{3}) || x.Graph.Tensor(first).Bytes != 12 {
		t.Errorf("a sum over the first dimension: %v", s)
	}
}
