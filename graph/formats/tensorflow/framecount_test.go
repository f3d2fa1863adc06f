package tensorflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/graph"
)

// frozenLoop is a loop as freezing writes it: a counter, a limit that is a size of x and that no
// iteration changes, a state, a weight, and a list of the states. What reads the list comes first.
var frozenLoop = func() string {
	variable := func(name, from, next, typ string) string {
		return node(name+"_enter", "Enter", []string{from}, "T", typ, "frame_name", `s: "loop"`) +
			node(name+"_merge", "Merge", []string{name + "_enter", name + "_next"}, "T", typ) +
			node(name+"_switch", "Switch", []string{name + "_merge", "go_on"}, "T", typ) +
			node(name, "Identity", []string{name + "_switch:1"}, "T", typ) +
			node(name+"_next", "NextIteration", []string{next}, "T", typ) +
			node(name+"_exit", "Exit", []string{name + "_switch"}, "T", typ)
	}
	const variant = "type: DT_VARIANT"
	return node("results", "TensorListStack", []string{"list_exit", "any"}, "element_dtype", float) +
		node("after", "MatMul", []string{"results_2", "w"}, "T", float) + node("results_2", "Reshape", []string{"results", "flat"}, "T", float) +
		node("flat", "Const", nil, "dtype", counts, "value", `tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: -1 int_val: 4 }`) +
		holder("x", 7, 2, 4) + holder("w", 4, 4) + integer("zero", "0") + integer("one", "1") + integer("many", "100") + integer("any", "-1") +
		node("shape", "Shape", []string{"x"}, "T", float) +
		node("size", "StridedSlice", []string{"shape", "begin", "end", "end"}, "T", counts, "Index", counts, "shrink_axis_mask", "i: 1") +
		node("begin", "Const", nil, "dtype", counts, "value", `tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 }`) +
		node("end", "Const", nil, "dtype", counts, "value", `tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 }`) +
		holder("first", 2, 4) + node("reserve", "TensorListReserve", []string{"any", "size"}, "element_dtype", float) +
		variable("i", "zero", "i_plus", counts) + variable("n", "size", "n", counts) + variable("h", "first", "new", float) + variable("list", "reserve", "set", variant) +
		node("w_enter", "Enter", []string{"w"}, "T", float, "frame_name", `s: "loop"`, "is_constant", "b: true") +
		node("i_plus", "AddV2", []string{"i", "one_in"}, "T", counts) + node("one_in", "Enter", []string{"one"}, "T", counts, "frame_name", `s: "loop"`, "is_constant", "b: true") +
		node("less", "Less", []string{"i_merge", "n_merge"}, "T", counts) + node("fewer", "Less", []string{"i_merge", "many_in"}, "T", counts) +
		node("many_in", "Enter", []string{"many"}, "T", counts, "frame_name", `s: "loop"`, "is_constant", "b: true") +
		node("both", "LogicalAnd", []string{"less", "fewer"}) + node("go_on", "LoopCond", []string{"both"}) +
		node("mul", "MatMul", []string{"h", "w_enter"}, "T", float) + node("new", "Tanh", []string{"mul"}, "T", float) +
		node("set", "TensorListSetItem", []string{"list", "i", "new"}, "element_dtype", float)
}()

// The trip count of a loop of TensorFlow 1 is that of its counter, also where the limit is computed
// behind the loop in the file, and what it put in a list has its shape.
func TestFrozenLoop(t *testing.T) {
	x, err := Import([]byte(frozenLoop), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, m := find(t, x.Graph, "mul"); m.GEMM != (graph.GEMM{Batch: 1, M: 2, N: 4, K: 4}) || m.Repeats != 7 || m.FLOPs != 7*m.GEMM.FLOPs() {
		t.Errorf("in the loop %+v", m)
	}
	if _, m := find(t, x.Graph, "after"); m.GEMM != (graph.GEMM{Batch: 1, M: 14, N: 4, K: 4}) || m.Repeats > 1 {
		t.Errorf("behind the loop %+v", m)
	}
	if x, err = Import([]byte(frozenLoop), "f", map[string]int64{"loop": 3}); err != nil {
		t.Fatal(err)
	}
	if _, m := find(t, x.Graph, "mul"); m.Repeats != 3 {
		t.Errorf("stated: %+v", m)
	}
	for what, file := range map[string]string{
		"a counter that is multiplied": strings.Replace(frozenLoop, `op: "AddV2"`, `op: "Mul"`, 1),
		"a limit that changes":         strings.Replace(frozenLoop, `input: "n"`, `input: "i_plus"`, 1),
	} {
		x, err := Import([]byte(strings.ReplaceAll(file, "int_val: 100", "int_val: 9")), "f", nil)
		if what == "a limit that changes" { // the other condition counts
			if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if _, m := find(t, x.Graph, "mul"); m.Repeats != 9 {
				t.Errorf("%s: %d times", what, m.Repeats)
			}
		} else if err == nil || !strings.Contains(err.Error(), "state it by --dim loop=N") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A conditional of Switch and Merge nodes counts all its branches, and a note says so.
func TestFrozenConditional(t *testing.T) {
	x, err := Import([]byte(holder("c")+holder("x", 4, 8)+holder("w", 8, 8)+node("s", "Switch", []string{"x", "c"}, "T", float)+node("s2", "Switch", []string{"w", "c"}, "T", float)+
		node("a", "MatMul", []string{"s", "s2"}, "T", float)+node("b", "Relu", []string{"s:1"}, "T", float)+node("m", "Merge", []string{"a", "b"}, "T", float)), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "1 conditional counts all its branches, as Switch and Merge nodes have them"; !slices.Contains(x.Notes, want) {
		t.Errorf("notes %q", x.Notes)
	}
	if x, err = Import([]byte(frozenLoop), "f", nil); err != nil || slices.ContainsFunc(x.Notes, func(n string) bool { return strings.Contains(n, "conditional") }) {
		t.Errorf("a loop is a conditional: %v, %q", err, x.Notes)
	}
}

// A product of complex numbers takes eight operations of real ones for each pair.
func TestComplexProducts(t *testing.T) {
	const complex64 = "type: DT_COMPLEX64"
	x, err := Import([]byte(node("x", "Placeholder", nil, "dtype", complex64, "shape", dims(4, 8))+node("w", "Placeholder", nil, "dtype", complex64, "shape", dims(8, 6))+
		node("y", "MatMul", []string{"x", "w"}, "T", complex64)), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, m := find(t, x.Graph, "y"); m.FLOPs != 8*4*8*6 {
		t.Errorf("%s operations", fmt.Sprint(m.FLOPs))
	}
}
