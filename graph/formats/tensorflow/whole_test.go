package tensorflow

import (
	"slices"
	"strings"
	"testing"

	corepb "github.com/wamuir/graft/tensorflow/core/protobuf/for_core_protos_go_proto"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"placer/graph"
)

const counts = "type: DT_INT32"

// integer writes a constant of one integer.
func integer(name, value string) string {
	return node(name, "Const", nil, "dtype", counts, "value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: "+value+" }")
}

// loopOver writes a loop whose body multiplies x, [2,4], by w, [4,4], and adds step to i,
// as long as i is less than limit and x is finite.
func loopOver(attrs ...string) string {
	signature := func(name, result string) string {
		return "function {\n signature { name: \"" + name + "\" input_arg { name: \"i\" type: DT_INT32 } input_arg { name: \"limit\" type: DT_INT32 } input_arg { name: \"x\" type: DT_FLOAT } input_arg { name: \"w\" type: DT_FLOAT } " + result + " }\n"
	}
	inner := func(nodes string) string { return strings.ReplaceAll(nodes, "node {", "node_def {") }
	return integer("zero", "1") + integer("ten", "10") + holder("x", 2, 4) + holder("w", 4, 4) +
		node("loop", "While", []string{"zero", "ten", "x", "w"}, append([]string{"cond", `func { name: "go" }`, "body", `func { name: "once" }`, "T", "list { type: DT_INT32 type: DT_INT32 type: DT_FLOAT type: DT_FLOAT }", "_output_shapes", "list { shape { } shape { } shape { dim { size: 2 } dim { size: 4 } } shape { dim { size: 4 } dim { size: 4 } } }"}, attrs...)...) +
		"library {\n" + signature("go", `output_arg { name: "r" type: DT_BOOL }`) +
		inner(node("less", "Less", []string{"i", "limit"}, "T", counts)+node("fine", "IsFinite", []string{"x"}, "T", float)+node("both", "LogicalAnd", []string{"less:z:0", "fine:y:0"})) + ` ret { key: "r" value: "both:z:0" } }` + "\n" +
		signature("once", `output_arg { name: "i2" type: DT_INT32 } output_arg { name: "l2" type: DT_INT32 } output_arg { name: "x2" type: DT_FLOAT } output_arg { name: "w2" type: DT_FLOAT }`) +
		inner(integer("three", "3")+node("next", "AddV2", []string{"i", "three:output:0"}, "T", counts)+node("mul", "MatMul", []string{"x", "w"}, "T", float)+node("same", "Identity", []string{"limit"}, "T", counts)) +
		` ret { key: "i2" value: "next:z:0" } ret { key: "l2" value: "same:output:0" } ret { key: "x2" value: "mul:product:0" } ret { key: "w2" value: "w" } }` + "\n}\n"
}

// A counter and its limit say how often a loop runs: 1, 4, 7 here; what is stated goes
// before.
func TestCountedLoops(t *testing.T) {
	for _, c := range []struct {
		dims map[string]int64
		want int64
	}{{nil, 3}, {map[string]int64{"loop": 7}, 7}} {
		x, err := Import([]byte(loopOver()), "f", c.dims)
		if err != nil {
			t.Fatal(err)
		}
		if _, m := find(t, x.Graph, "loop/mul"); m.Repeats != c.want || len(x.UnknownDims) > 0 {
			t.Errorf("%d iterations, want %d; unknown %q", m.Repeats, c.want, x.UnknownDims)
		}
	}
	for what, file := range map[string]string{
		"the limit changes": strings.Replace(loopOver(), `"l2" value: "same:output:0"`, `"l2" value: "next:z:0"`, 1),
		"a step of -3":      strings.Replace(loopOver(), "int_val: 3", "int_val: -3", 1),
		"an unknown limit":  strings.Replace(loopOver(), integer("ten", "10"), node("ten", "Placeholder", nil, "dtype", counts, "shape", dims()), 1),
	} {
		if _, err := Import([]byte(file), "f", nil); err == nil || !strings.Contains(err.Error(), "--dim loop=N") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A node that is not to be inlined is one op, which costs what the iterations cost, one
// without a count as one, and of a conditional's branches the dearest.
func TestOneOp(t *testing.T) {
	x, err := Import([]byte(loopOver("_noinline", "b: true")), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	id, o := find(t, x.Graph, "loop")
	if want := (graph.GEMM{Batch: 1, M: 2, N: 4, K: 4}); x.Graph.NumOps() != 5 || o.GEMM != want || o.Repeats != 3 || o.FLOPs < 3*want.FLOPs() || o.FLOPs > 1.5*3*want.FLOPs() || o.Bytes < 3*4*(8+16+8) {
		t.Errorf("%d ops, the loop is %+v", x.Graph.NumOps(), o)
	}
	if first, end := x.Graph.Outputs(id); end-first != 4 || !slices.Equal(x.Graph.Tensor(first+2).Shape, graph.Shape{2, 4}) {
		t.Errorf("the loop has %d outputs", end-first)
	}
	unknown := strings.Replace(loopOver("_noinline", "b: true"), integer("ten", "10"), node("ten", "Placeholder", nil, "dtype", counts, "shape", dims()), 1)
	if x, err = Import([]byte(unknown), "f", nil); err != nil || !slices.Contains(x.Notes, "1 loop runs an unknown number of times and is counted once; --dim NAME=N") {
		t.Errorf("%v, %q", err, x.Notes)
	}
	branch := holder("c") + holder("x", 4, 8) + node("if", "If", []string{"c", "x"}, "then_branch", `func { name: "cheap" }`, "else_branch", `func { name: "dear" }`, "Tout", "list { type: DT_FLOAT }", "_noinline", "b: true") +
		"library {\n" + function("cheap", node("r", "Relu", []string{"a"}, "T", float)) + function("dear", node("e", "Exp", []string{"a"}, "T", float)+node("r", "Exp", []string{"e:0"}, "T", float)) + "}\n"
	if x, err = Import([]byte(branch), "f", nil); err != nil {
		t.Fatal(err)
	}
	if _, o := find(t, x.Graph, "if"); x.Graph.NumOps() != 3 || o.FLOPs != 2*4*32 || o.Repeats > 1 {
		t.Errorf("%d ops, the conditional is %+v", x.Graph.NumOps(), o)
	}
}

// A SavedModel has its model's graph once for each signature, and nodes that save and
// restore: what is served counts. Which variables are trained its objects say.
func TestSignatures(t *testing.T) {
	weight := func(name string) string {
		return node(name, "VarHandleOp", nil, "dtype", float, "shape", dims(4, 4), "shared_name", `s: "`+name+`"`) + node(name+"/Read", "ReadVariableOp", []string{name}, "dtype", float)
	}
	nodes := weight("w") + weight("mean_1") + weight("other") + holder("x", 2, 4)
	for _, s := range []string{"serve", "serving_default"} {
		nodes += node(s, "MatMul", []string{"x", "w/Read"}, "T", float) + node(s+"/out", "AddV2", []string{s, "mean_1/Read"}, "T", float)
	}
	signature := func(name string) string {
		return `signature_def { key: "` + name + `" value { outputs { key: "y" value { name: "` + name + `/out:0" } } } }` + "\n"
	}
	object := func(name, trainable string) string {
		return `nodes { variable { name: "` + name + `" trainable: ` + trainable + ` } }` + "\n"
	}
	saved := func(signatures string) string {
		return "saved_model_schema_version: 1\nmeta_graphs {\n graph_def {\n" + nodes + "}\n" + signatures + "object_graph_def {\n" + object("w", "true") + object("mean", "false") + "}\n}\n"
	}
	text := saved(signature("serve") + signature("serving_default") + signature(initSignature))
	model := &corepb.SavedModel{}
	if err := prototext.Unmarshal([]byte(text), model); err != nil {
		t.Fatal(err)
	}
	binary, err := proto.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{[]byte(text), binary} {
		x, err := Import(data, "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.Nodes != 11 || x.Graph.NumOps() != 7 || x.Graph.Params() != 16 || x.Graph.FLOPs() < 64 || !slices.Contains(x.Notes, "of 2 signatures, the graph is that of serving_default") {
			t.Errorf("%d nodes, %d ops, %d parameters, %v FLOPs, notes %q", x.Nodes, x.Graph.NumOps(), x.Graph.Params(), x.Graph.FLOPs(), x.Notes)
		}
	}
	if _, err := Import([]byte(saved(signature(initSignature))), "f", nil); err == nil || !strings.Contains(err.Error(), "save it with signatures=") {
		t.Error(err)
	}
	if _, err := Import([]byte(saved(signature("absent"))), "f", nil); err == nil || !strings.Contains(err.Error(), "no node is called absent/out") {
		t.Error(err)
	}
}

// Which variables are trained: as the node says; else by the names that optimizers give.
func TestTrained(t *testing.T) {
	file := node("kernel", "VarHandleOp", nil, "dtype", float, "shape", dims(3), "_trainable", "b: true") +
		node("adam/kernel_momentum", "VarHandleOp", nil, "dtype", float, "shape", dims(3), "_trainable", "b: false") +
		node("bias", "VarHandleOp", nil, "dtype", float, "shape", dims(5)) + node("bias/Adam", "VarHandleOp", nil, "dtype", float, "shape", dims(5))
	x, err := Import([]byte(file), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if x.Graph.Params() != 8 || x.Graph.Resident() != 4*16 {
		t.Errorf("%d parameters, %d bytes", x.Graph.Params(), x.Graph.Resident())
	}
}
