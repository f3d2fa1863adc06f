package torchtrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/formatstest"
	"placer/units"
)

const old = `{"schema": "1.0.1", "pid": 1, "nodes": [
{"name": "[pytorch|profiler|execution_graph|thread]", "id": 2, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
{"name": "aten::linear", "id": 3, "parent": 2, "inputs": [[10, 20, 0, 32, 4, "cuda:0"], [11, 21, 0, 64, 4, "cuda:0"]], "input_shapes": [[4, 8], [8, 8]], "input_types": ["Tensor(float)", "Tensor(float)"], "outputs": [[12, 22, 0, 32, 4, "cuda:0"]], "output_shapes": [[4, 8]], "output_types": ["Tensor(float)"]},
{"name": "aten::t", "id": 4, "parent": 3, "inputs": [[11, 21, 0, 64, 4, "cuda:0"]], "input_shapes": [[8, 8]], "input_types": ["Tensor(float)"], "outputs": [[13, 21, 0, 64, 4, "cuda:0"]], "output_shapes": [[8, 8]], "output_types": ["Tensor(float)"]},
{"name": "aten::addmm", "id": 5, "parent": 3, "inputs": [[14, 24, 0, 8, 4, "cuda:0"], [10, 20, 0, 32, 4, "cuda:0"], [13, 21, 0, 64, 4, "cuda:0"], 1], "input_shapes": [[8], [4, 8], [8, 8], []], "input_types": ["Tensor(float)", "Tensor(float)", "Tensor(float)", "Int"], "outputs": [[12, 22, 0, 32, 4, "cuda:0"]], "output_shapes": [[4, 8]], "output_types": ["Tensor(float)"]},
{"name": "aten::cat", "id": 6, "parent": 2, "inputs": [[[12, 22, 0, 32, 4, "cuda:0"], [12, 22, 0, 32, 4, "cuda:0"]], 0], "input_shapes": [[[4, 8], [4, 8]], []], "input_types": ["GenericList[Tensor(float),Tensor(float)]", "Int"], "outputs": [[15, 25, 0, 64, 4, "cuda:0"]], "output_shapes": [[8, 8]], "output_types": ["Tensor(float)"]}
]}`

const chakra = `{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [
{"id": 5, "name": "aten::mm", "ctrl_deps": 2, "inputs": {"values": [[1, 1, 0, 32, 2, "cuda:0"], [2, 2, 0, 64, 2, "cuda:0"]], "shapes": [[4, 8], [8, 8]], "types": ["Tensor(c10::Half)", "Tensor(c10::Half)"]}, "outputs": {"values": [[3, 3, 0, 32, 2, "cuda:0"]], "shapes": [[4, 8]], "types": ["Tensor(c10::Half)"]}, "attrs": []}]}`

const kineto = `{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 100, "dur": 50, "args": {"External id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1, "ts": 110, "dur": 30, "args": {"External id": 2}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 120, "dur": 5, "args": {"correlation": 7}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 130, "dur": 5, "args": {"correlation": 8}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 145, "dur": 2, "args": {"correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 200, "dur": 10, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "epilogue", "pid": 0, "tid": 7, "ts": 210, "dur": 2.5, "args": {"correlation": 8}},
{"ph": "X", "cat": "gpu_memset", "name": "Memset", "pid": 0, "tid": 7, "ts": 220, "dur": 1, "args": {"correlation": 9}},
{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 7, "ts": 120}
]}`

func TestExecution(t *testing.T) {
	x, err := ImportExecution([]byte(old), "dir/step_et.json")
	if err != nil || !SniffExecution([]byte(old)) {
		t.Fatal(err)
	}
	g := x.Graph
	if x.Nodes != 5 || x.Edges != 6 || g.NumOps() != 6 || g.Name() != "step_et" { // 3 innermost operators, 3 tensors from before
		t.Errorf("%d nodes, %d edges, %d ops, name %s", x.Nodes, x.Edges, g.NumOps(), g.Name())
	}
	for i := range graph.OpID(g.NumOps()) {
		switch o := g.Op(i); o.Name {
		case "addmm_5":
			if (o.GEMM != graph.GEMM{Batch: 1, M: 4, N: 8, K: 8}) || o.Kind != "MatMul" {
				t.Errorf("%+v", o)
			}
		case "cat_6":
			if len(g.Inputs(i)) != 2 || g.Op(g.Tensor(g.Inputs(i)[0]).Producer).Name != "addmm_5" {
				t.Errorf("the list's tensors are not those of addmm")
			}
		case "linear_3":
			t.Error("an operator with others inside is an op")
		}
	}
	if x, err = ImportExecution([]byte(chakra), "f"); err != nil || x.Graph.FLOPs() != 2*4*8*8 || x.Seconds != nil || x.Graph.Op(2).DType != graph.F16 {
		t.Errorf("Chakra's schema: %v", err)
	}
}

// step is an execution trace of one operator: of its arguments, each the shape of a
// tensor or a value as JSON has it, to a tensor of shape out.
func step(name, typ string, out []int64, args ...any) string {
	var values, shapes, types []string
	tensor := func(k int, s []int64) string { return fmt.Sprintf(`[%d, %d, 0, %d, 2, "cuda:0"]`, k, k, size(s)) }
	text := func(s []int64) string { return strings.ReplaceAll(fmt.Sprint(s), " ", ", ") }
	for k, a := range args {
		switch a := a.(type) {
		case []int64:
			values, shapes, types = append(values, tensor(k+1, a)), append(shapes, text(a)), append(types, `"Tensor(`+typ+`)"`)
		case string:
			values, shapes, types = append(values, a), append(shapes, "[]"), append(types, `"Bool"`)
		}
	}
	return fmt.Sprintf(`{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [{"id": 5, "name": "aten::%s", "ctrl_deps": 2, "inputs": {"values": [%s], "shapes": [%s], "types": [%s]},
"outputs": {"values": [%s], "shapes": [%s], "types": ["Tensor(float)"]}, "attrs": []}]}`, name, strings.Join(values, ", "), strings.Join(shapes, ", "), strings.Join(types, ", "), tensor(99, out), text(out))
}

// Operators whose arithmetic is a product, by what their schemas say of the order and the
// layout of tensors.
func TestProducts(t *testing.T) {
	s := func(n ...int64) []int64 { return n }
	const half, no, yes, bias = "c10::Half", "false", "true", "null"
	for _, c := range []struct {
		op, typ string
		out     []int64
		args    []any
		want    graph.GEMM
		dtype   graph.DType
	}{
		{"mm", half, s(4, 8), []any{s(4, 16), s(16, 8)}, graph.GEMM{Batch: 1, M: 4, N: 8, K: 16}, graph.F16},
		{"addmm", half, s(4, 8), []any{s(4, 8), s(4, 16), s(16, 8), s(4, 8)}, graph.GEMM{Batch: 1, M: 4, N: 8, K: 16}, graph.F16},
		{"mv", half, s(4), []any{s(4, 16), s(16)}, graph.GEMM{Batch: 1, M: 4, N: 1, K: 16}, graph.F16},
		{"_scaled_mm", "c10::Float8_e4m3fn", s(4, 8), []any{s(4, 16), s(16, 8), s(4, 1), s(1, 8)}, graph.GEMM{Batch: 1, M: 4, N: 8, K: 16}, graph.F8},
		{"_int_mm", "signed char", s(4, 8), []any{s(4, 16), s(16, 8)}, graph.GEMM{Batch: 1, M: 4, N: 8, K: 16}, graph.I8},
		{"_grouped_mm", half, s(64, 8), []any{s(64, 16), s(4, 16, 8), s(4)}, graph.GEMM{Batch: 1, M: 64, N: 8, K: 16}, graph.F16},
		{"_grouped_mm", half, s(4, 16, 8), []any{s(16, 64), s(64, 8), s(4)}, graph.GEMM{Batch: 1, M: 16, N: 8, K: 64}, graph.F16},
		{"_grouped_mm", half, s(4, 5, 8), []any{s(4, 5, 16), s(4, 16, 8)}, graph.GEMM{Batch: 4, M: 5, N: 8, K: 16}, graph.F16},
		{"_scaled_grouped_mm", "c10::Float8_e4m3fn", s(5, 64), []any{s(4, 5, 16), s(16, 64), s(4, 5), s(64)}, graph.GEMM{Batch: 1, M: 5, N: 64, K: 16}, graph.F8},
		{"_scaled_dot_product_flash_attention", half, s(2, 8, 32, 64), []any{s(2, 8, 32, 64), s(2, 4, 48, 64), s(2, 4, 48, 64)}, graph.GEMM{Batch: 8, M: 2 * 32, N: 48, K: 2 * 64}, graph.F16},
		{"_scaled_dot_product_flash_attention", half, s(2, 8, 32, 64), []any{s(2, 8, 32, 64), s(2, 8, 32, 64), s(2, 8, 32, 64), "0.0", yes}, graph.GEMM{Batch: 16, M: 32, N: 17, K: 2 * 64}, graph.F16},
		{"_scaled_dot_product_efficient_attention_backward", half, s(2, 8, 32, 64), []any{s(2, 8, 32, 64), s(2, 8, 32, 64), s(2, 8, 48, 64), s(2, 8, 48, 64)}, graph.GEMM{Batch: 16, M: 32, N: 48, K: 5 * 64}, graph.F16},
		{"_flash_attention_forward", half, s(2, 32, 8, 64), []any{s(2, 32, 8, 64), s(2, 48, 4, 64), s(2, 48, 4, 64)}, graph.GEMM{Batch: 8, M: 2 * 32, N: 48, K: 2 * 64}, graph.F16},
		{"_flash_attention_backward", half, s(2, 32, 8, 64), []any{s(2, 32, 8, 64), s(2, 32, 8, 64), s(2, 48, 8, 64), s(2, 48, 8, 64)}, graph.GEMM{Batch: 16, M: 32, N: 48, K: 5 * 64}, graph.F16},
		{"_efficient_attention_forward", half, s(2, 32, 8, 64), []any{s(2, 32, 8, 64), s(2, 48, 8, 64), s(2, 48, 8, 64)}, graph.GEMM{Batch: 16, M: 32, N: 48, K: 2 * 64}, graph.F16},
		{"_cudnn_rnn", half, s(10, 8, 16), []any{s(10, 8, 32), s(64, 32), s(64, 16), s(64), s(64), s(5000), s(1, 8, 16)}, graph.GEMM{Batch: 2, M: 8, N: 64, K: 24}, graph.F16},
		{"_cudnn_rnn_backward", half, s(10, 8, 32), []any{s(10, 8, 32), s(64, 32), s(64, 16), s(64), s(64), s(5000), s(1, 8, 16)}, graph.GEMM{Batch: 4, M: 8, N: 64, K: 24}, graph.F16},
		{"cudnn_convolution", half, s(2, 16, 8, 8), []any{s(2, 4, 8, 8), s(16, 4, 3, 3)}, graph.GEMM{Batch: 1, M: 128, N: 16, K: 36}, graph.F16},
		{"cudnn_convolution", half, s(2, 16, 8), []any{s(2, 4, 8), s(16, 4, 3)}, graph.GEMM{Batch: 1, M: 16, N: 16, K: 12}, graph.F16},
		{"cudnn_convolution", half, s(2, 16, 4, 4, 4), []any{s(2, 4, 4, 4, 4), s(16, 4, 3, 3, 3)}, graph.GEMM{Batch: 1, M: 128, N: 16, K: 108}, graph.F16},
		{"cudnn_convolution", half, s(2, 16, 8, 8), []any{s(2, 16, 8, 8), s(16, 1, 3, 3)}, graph.GEMM{Batch: 16, M: 128, N: 1, K: 9}, graph.F16},
		{"cudnn_convolution_transpose", half, s(2, 4, 16, 16), []any{s(2, 16, 8, 8), s(16, 4, 2, 2)}, graph.GEMM{Batch: 1, M: 128, N: 16, K: 16}, graph.F16},
		{"convolution", half, s(2, 4, 16, 16), []any{s(2, 16, 8, 8), s(16, 4, 2, 2), bias, "[2, 2]", "[0, 0]", "[1, 1]", yes, "[0, 0]", "1"}, graph.GEMM{Batch: 1, M: 128, N: 16, K: 16}, graph.F16},
		{"convolution_backward", half, s(2, 4, 8, 8), []any{s(2, 16, 8, 8), s(2, 4, 8, 8), s(16, 4, 3, 3), bias, "[1, 1]", "[1, 1]", "[1, 1]", no, "[0, 0]", "1", "[true, true, false]"}, graph.GEMM{Batch: 2, M: 128, N: 16, K: 36}, graph.F16},
		{"convolution_backward", half, s(2, 4, 8, 8), []any{s(2, 16, 8, 8), s(2, 4, 8, 8), s(16, 4, 3, 3), bias, "[1, 1]", "[1, 1]", "[1, 1]", no, "[0, 0]", "1", "[false, true, false]"}, graph.GEMM{Batch: 1, M: 128, N: 16, K: 36}, graph.F16},
		{"convolution_backward", half, s(2, 16, 8, 8), []any{s(2, 4, 16, 16), s(2, 16, 8, 8), s(16, 4, 2, 2), bias, "[2, 2]", "[0, 0]", "[1, 1]", yes, "[0, 0]", "1", "[true, true, false]"}, graph.GEMM{Batch: 2, M: 128, N: 16, K: 16}, graph.F16},
	} {
		x, err := ImportExecution([]byte(step(c.op, c.typ, c.out, c.args...)), "f")
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		o := x.Graph.Op(graph.OpID(x.Graph.NumOps() - 1))
		if n, _ := o.Iterations(); o.GEMM != c.want || o.FLOPs != c.want.FLOPs()*units.FLOPs(n) || (n == 10) != strings.Contains(c.op, "_rnn") || o.DType != c.dtype || len(x.Notes) != 1 {
			t.Errorf("%s of %v: %+v, %v FLOPs of %v, notes %q", c.op, c.args, o.GEMM, o.FLOPs, o.DType, x.Notes)
		}
	}
}

// Operators whose arithmetic is not known are named.
func TestUnpriced(t *testing.T) {
	x, err := ImportExecution([]byte(step("_weight_int4pack_mm", "int", []int64{4, 8}, []int64{4, 16}, []int64{2, 8})), "f")
	if want := "1 operator whose arithmetic is not known costs an operation an element at most: 1 aten::_weight_int4pack_mm"; err != nil || !slices.Contains(x.Notes, want) {
		t.Errorf("%q, %v", x.Notes, err)
	}
}

func TestKineto(t *testing.T) {
	x, err := ImportKineto([]byte(kineto), "f")
	if err != nil || !SniffKineto([]byte(kineto)) || SniffExecution([]byte(kineto)) {
		t.Fatal(err)
	}
	if x.Nodes != 2 || x.Edges != 1 || x.Graph.NumOps() != 2 || x.Graph.NumControl() != 1 {
		t.Errorf("%+v", x)
	}
	if o := x.Graph.Op(0); o.Name != "addmm" || x.Seconds[0] != 12.5e-6 || x.Graph.Op(1).Name != "linear" || x.Seconds[1] != 1e-6 {
		t.Errorf("%+v takes %v", o, x.Seconds)
	}
	cpu := strings.ReplaceAll(strings.ReplaceAll(kineto, `"kernel"`, `"x"`), "gpu_memset", "x")
	if x, err = ImportKineto([]byte(cpu), "f"); err != nil || x.Graph.NumOps() != 1 || x.Seconds[0] != 30e-6 {
		t.Errorf("without kernels: %+v, %v", x, err)
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(old, `[13, 21, 0, 64, 4, "cuda:0"], 1]`, `[13], 1]`, 1):                "f: node 5 (aten::addmm): inputs: argument 2: a tensor of 1 fields, want 5 or more",
		strings.Replace(old, `[13, 21, 0, 64, 4, "cuda:0"], 1]`, `[13, 21, 0, -64, 4], 1]`, 1): "f: node 5 (aten::addmm): inputs: argument 2: a tensor of -64 elements of 4 bytes",
		`{"schema": "1.0.1", "nodes": []}`:                                                     "f: graph f: the graph has no ops",
	} {
		if _, err := ImportExecution([]byte(text), "f"); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := ImportKineto([]byte(strings.Replace(kineto, `"dur": 50`, `"dur": -50`, 1)), "f"); err == nil || err.Error() != "f: event 0 (aten::linear): begins at 100 and takes -50 microseconds" {
		t.Error(err)
	}
}

// FuzzImport: no input panics, and every error is one line that begins with the file's
// name.
func FuzzImport(f *testing.F) {
	for _, text := range []string{old, chakra, kineto} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]byte, string) (*Imported, error){ImportExecution, ImportKineto} {
			x, err := read(data, "f")
			if err == nil && x.Graph == nil || err != nil && !formatstest.Located(err, "f") {
				t.Errorf("%q", err)
			}
		}
	})
}
